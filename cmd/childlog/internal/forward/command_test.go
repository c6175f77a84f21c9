package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/files"
)

// TestCommandOfAnother: arguments, variables and streams arrive as they are,
// which need not be UTF-8; variables that no command reads do not.
func TestCommandOfAnother(t *testing.T) {
	r := through(t, t.Context(), func(_ context.Context, env Env, args []string) int {
		b, err := io.ReadAll(env.Stdin)
		fmt.Fprintf(env.Stdout, "%q %q %q %q %v", args, env.Getenv("TERM"), env.Getenv("SECRET"), b, err)
		fmt.Fprint(env.Stderr, "said")
		return 7
	}, strings.NewReader("in\xfe"), "append", "a\xffb", "")
	require.NoError(t, r.err)
	require.NoError(t, r.served)
	require.Equal(t, 7, r.code)
	require.Equal(t, `["append" "a\xffb" ""] "xterm\xff" "" "in\xfe" <nil>`, r.out)
	require.Equal(t, "said", r.msg)
}

// TestInputGoesAlong: stdin that is at hand to its end is sent with hello, and
// asked for only if it is long.
func TestInputGoesAlong(t *testing.T) {
	for _, input := range []string{"", "a\xfe", strings.Repeat("x", maxData), strings.Repeat("x", maxData+1)} {
		a, b := pair(t)
		served := make(chan error, 1)
		go func() {
			served <- Serve(context.Background(), nil, a, nil, func(_ context.Context, env Env, _ []string) int {
				b, err := io.ReadAll(env.Stdin)
				fmt.Fprintf(env.Stderr, "%v", err)
				for part := range slices.Chunk(b, 1000) {
					env.Stdout.Write(part)
				}
				return 0
			}, ServeOptions{})
		}()
		var out, said bytes.Buffer
		in := io.Reader(quiet{t})
		if len(input) > maxData {
			in = strings.NewReader(input)
		}
		_, err := (&Call{newLink(b, nil)}).Run(t.Context(), Env{Stdin: in, Input: []byte(input), Stdout: &out, Stderr: &said, Files: files.Local{}, Getenv: func(string) string { return "" }}, []string{"ls"})
		require.NoError(t, err)
		require.NoError(t, <-served)
		require.Equal(t, input, out.String())
		require.Equal(t, "<nil>", said.String())
	}
}

// TestStdinIsReadOnDemand: no byte more than the command asks for.
func TestStdinIsReadOnDemand(t *testing.T) {
	r := through(t, t.Context(), func(context.Context, Env, []string) int { return 0 }, quiet{t}, "ls")
	require.NoError(t, r.err)
	in := strings.NewReader("abcdef")
	r = through(t, t.Context(), func(_ context.Context, env Env, _ []string) int {
		b := make([]byte, 3)
		_, err := io.ReadFull(env.Stdin, b)
		fmt.Fprint(env.Stdout, string(b), err)
		return 0
	}, in, "append")
	require.NoError(t, r.err)
	require.Equal(t, "abc<nil>", r.out)
	require.Equal(t, 3, in.Len())
}

// TestMuchOutput goes in as many frames as it takes, in order.
func TestMuchOutput(t *testing.T) {
	want := strings.Repeat("0123456789", 100_000)
	r := through(t, t.Context(), func(_ context.Context, env Env, _ []string) int {
		_, err := io.WriteString(env.Stdout, want)
		fmt.Fprint(env.Stderr, err)
		return 0
	}, quiet{t})
	require.NoError(t, r.err)
	require.Equal(t, want, r.out)
	require.Equal(t, "<nil>", r.msg)
}

// TestInterrupt: a signal of the caller's ends the command's context, and the
// command still says how it ended.
func TestInterrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	r := through(t, ctx, func(ctx context.Context, env Env, _ []string) int {
		interrupt()
		<-ctx.Done()
		fmt.Fprint(env.Stderr, "interrupted")
		return 130
	}, quiet{t})
	require.NoError(t, r.err)
	require.Equal(t, 130, r.code)
	require.Equal(t, "interrupted", r.msg)
}

// TestCallerGoesAway: the end of the connection ends the command, also one that
// waits for its caller.
func TestCallerGoesAway(t *testing.T) {
	l, served := greet(t, func(ctx context.Context, env Env, _ []string) int {
		_, err := io.ReadAll(env.Stdin)
		assert.Error(t, err)
		assert.Error(t, ctx.Err(), "it has ended when the caller is missed")
		_, err = env.Files.Open("any")
		assert.Error(t, err)
		return 0
	}, ServeOptions{})
	k, _, err := l.next()
	require.NoError(t, err)
	require.Equal(t, kindRequest, k)
	l.close()
	require.Error(t, <-served)
}

// TestHolderGoesAway: the caller does not know what the command did.
func TestHolderGoesAway(t *testing.T) {
	l, done := forged(t, "append", "x")
	l.close()
	r := done()
	lost := (*LostError)(nil)
	require.ErrorAs(t, r.err, &lost)
	require.False(t, lost.Printed)

	l, done = forged(t, "ls")
	require.NoError(t, l.send(kindOut, []byte("half of"), nil))
	l.close()
	r = done()
	require.ErrorAs(t, r.err, &lost)
	require.True(t, lost.Printed)
	require.Equal(t, "half of", r.out)
}

// TestSlowCaller: one that reads nothing is given up, and its command ends.
func TestSlowCaller(t *testing.T) {
	wrote := make(chan error, 1)
	_, served := greet(t, func(ctx context.Context, env Env, _ []string) int {
		var err error
		for err == nil {
			_, err = env.Stdout.Write(make([]byte, maxData))
		}
		wrote <- err
		<-ctx.Done()
		return 1
	}, ServeOptions{Slow: 500 * time.Millisecond})
	require.Error(t, <-wrote)
	require.Error(t, <-served)
}

// TestStoppingWaitsForNoCaller: one that was stopped, or that nobody gives any
// input, does not keep the holder.
func TestStoppingWaitsForNoCaller(t *testing.T) {
	for name, run := range map[string]Runner{
		"print": func(_ context.Context, env Env, _ []string) int {
			for {
				if _, err := env.Stdout.Write(make([]byte, maxData)); err != nil {
					return 9
				}
			}
		},
		"read": func(_ context.Context, env Env, _ []string) int {
			if _, err := env.Stdin.Read(make([]byte, 1)); err != nil {
				return 9
			}
			return 0
		},
		"open": func(_ context.Context, env Env, _ []string) int {
			if _, err := env.Files.Open("pipe"); err != nil {
				return 9
			}
			return 0
		},
	} {
		a, b := pair(t)
		ctx, stop := context.WithCancelCause(t.Context())
		code := make(chan int, 1)
		served := make(chan error, 1)
		go func() {
			served <- Serve(ctx, nil, a, nil, func(ctx context.Context, env Env, args []string) int {
				stop(ErrStopping)
				n := run(ctx, env, args)
				code <- n
				return n
			}, ServeOptions{})
		}()
		require.NoError(t, newLink(b, nil).sendJSON(kindHello, hello{}, nil)) // and reads nothing
		require.Equal(t, 9, <-code, name)
		require.Error(t, <-served, name)
	}
}

// TestStoppedAtItsEnd: a command that was through when the holder's patience ended
// has done what it says; only one that failed then was ended by it.
func TestStoppedAtItsEnd(t *testing.T) {
	for code, want := range map[int]error{0: nil, 7: ErrStopped} {
		a, b := pair(t)
		ctx, stop := context.WithCancelCause(t.Context())
		served := make(chan error, 1)
		go func() {
			served <- Serve(ctx, nil, a, nil, func(context.Context, Env, []string) int {
				stop(ErrStopping)
				return code
			}, ServeOptions{})
		}()
		got, err := (&Call{newLink(b, nil)}).Run(t.Context(), Env{Stdin: quiet{t}, Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }}, nil)
		require.Equal(t, want, err)
		require.Equal(t, code, got)
		<-served // whether its patience or the command was first
	}
}

// failing is an output that takes nothing.
type failing struct{}

var errFull = errors.New("full")

func (failing) Write([]byte) (int, error) { return 0, errFull }

// TestOutputFails: the command comes to its end, and the caller tells.
func TestOutputFails(t *testing.T) {
	a, b := pair(t)
	served := make(chan error, 1)
	finished := false
	go func() {
		served <- Serve(context.Background(), nil, a, nil, func(ctx context.Context, env Env, _ []string) int {
			fmt.Fprint(env.Stdout, "one")
			fmt.Fprint(env.Stdout, "two")
			finished = ctx.Err() == nil
			return 0
		}, ServeOptions{})
	}()
	_, err := (&Call{newLink(b, nil)}).Run(t.Context(), Env{Stdin: quiet{t}, Stdout: failing{}, Stderr: io.Discard, Getenv: func(string) string { return "" }}, nil)
	out := (*OutputError)(nil)
	require.ErrorAs(t, err, &out)
	require.ErrorIs(t, err, errFull)
	require.NoError(t, <-served)
	require.True(t, finished)
}
