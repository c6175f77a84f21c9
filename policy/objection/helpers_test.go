package objection_test

import (
	"encoding/json"
	"testing"

	"childlog/policy/objection"

	"github.com/stretchr/testify/require"
)

type (
	args = map[string]any
	look = func(objection.Call) (*objection.Objection, error)
)

// secret is in every value of the tests that must not get into a record.
const secret = "hunter2-SECRET"

func sweeper(t require.TestingT, objectors ...objection.Objector) *objection.Sweeper {
	s, err := objection.New(objection.Options{}, objectors...)
	require.NoError(t, err)
	return s
}

// one sweeps a single call of the tool bash.
func one(t require.TestingT, given args, objectors ...objection.Objector) objection.Outcome {
	outcomes := sweeper(t, objectors...).Sweep([]objection.Call{{ID: "c1", Tool: "bash", Args: given}})
	require.Len(t, outcomes, 1)
	return outcomes[0]
}

// named is an objector with one rule.
func named(rule string, f look) objection.Objector {
	return objection.Objector{Rules: []string{rule}, Object: f}
}

// silent changes arguments and says nothing.
func silent(rule string, change func(args)) objection.Objector {
	return named(rule, func(c objection.Call) (*objection.Objection, error) {
		change(c.Args)
		return nil, nil
	})
}

func noop(args) {}

// encoded is the outcome as a harness would store it.
func encoded(t require.TestingT, v any) string {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func amended(rule string, keys ...string) []objection.Amendment {
	return []objection.Amendment{{Rule: rule, Keys: keys}}
}

func degraded(rule string, why objection.Why) []objection.Degraded {
	return []objection.Degraded{{Rule: rule, Why: why}}
}

// decoded reads arguments as a harness gets them.
func decoded(t testing.TB, text string) args {
	var m args
	require.NoError(t, json.Unmarshal([]byte(text), &m))
	return m
}
