//go:build !(linux && amd64)

package torture_test

import "testing"

// TestWithATracer stands for the tests of this package that fail single system
// calls or record them.
func TestWithATracer(t *testing.T) {
	t.Skip("the tracer knows the registers of linux on amd64 only")
}
