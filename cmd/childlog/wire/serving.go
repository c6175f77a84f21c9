package wire

// Serving says where a held store can be reached.
type Serving struct {
	Store  string  `json:"store"`
	Path   string  `json:"path"`
	Socket string  `json:"socket"`
	URL    *string `json:"url"` // null: it is not served over TCP
}
