package harness

// SetMost bounds answers for a test.
func (c *Client) SetMost(n int64) { c.most = n }
