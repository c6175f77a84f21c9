package command

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"childlog/eventlog"
)

// version names the build, as far as it knows itself, and the format of the
// stores it writes.
var version = sync.OnceValue(func() string {
	name, extra := "unknown", []string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		if name = info.Main.Version; name == "" || name == "(devel)" {
			name = "development build"
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				extra = append(extra, "revision "+s.Value[:min(12, len(s.Value))])
			case "vcs.time":
				extra = append(extra, s.Value)
			case "vcs.modified":
				if s.Value == "true" {
					extra = append(extra, "with uncommitted changes")
				}
			}
		}
		extra = append(extra, info.GoVersion)
	}
	return fmt.Sprintf("childlog %s (%s)\nstore format %d", name, strings.Join(extra, ", "), eventlog.FormatVersion)
})
