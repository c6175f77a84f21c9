package forward

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"childlog/cmd/childlog/internal/files"
	"childlog/cmd/childlog/internal/gitrepo"
	"childlog/cmd/childlog/internal/inspect"
)

// TestRepositoriesOfTheCaller: what a holder learns of a repository is what the
// caller finds out, and no file of it is handed over, though the command line
// names none.
func TestRepositoriesOfTheCaller(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "objects/x": "", "refs/x": "", "config": "[core]\n\tbare = false\n", "hooks/post-index-change": ""} {
		path := filepath.Join(dir, ".git", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".git", "modules"), 0o700))
	inHolder(t, []string{"guard", "claude-code"}, func(f files.Files) {
		for _, use := range []inspect.Repository{{Dir: dir}, {Dir: dir, Index: true}, {Dir: dir, Subs: true}, {Dir: "/"}, {Dir: filepath.Join(dir, "gone")}, {Dir: "relative"}} {
			require.Equal(t, gitrepo.Check(files.Local{}, use), gitrepo.Check(f, use), "%v", use)
		}
		_, err := f.Open(filepath.Join(dir, ".git", "config"))
		require.Error(t, err)
	})
}

// TestSilenceOnARepositoryRefuses: a caller that answers without a verdict, or with
// a refusal that says nothing, or too much.
func TestSilenceOnARepositoryRefuses(t *testing.T) {
	for name, r := range map[string]reply{"nothing": {}, "an empty one": {Git: &git{}}, "too much": {Git: &git{Why: strings.Repeat("é", maxWhy)}}} {
		why := r.repository(nil)
		require.NotNil(t, why, name)
		require.Equal(t, "repository:git", why.Code(), name)
		require.LessOrEqual(t, len(why.Text), maxWhy, name)
	}
	require.Nil(t, (&reply{Git: &git{May: true}}).repository(nil))
	require.NotNil(t, (&reply{Git: &git{May: true}}).repository(ErrProtocol))
}
