package wire

import (
	"time"

	"childlog/cmd/childlog/internal/tokens"
)

// Token describes a bearer token of the service.
type Token struct {
	ID      string  `json:"id"`
	Role    string  `json:"role"`
	Label   string  `json:"label"`
	Created string  `json:"created"`
	Expires *string `json:"expires"` // null: never
	Expired bool    `json:"expired"`
}

// NewToken is a token that was just made, with the secret that is nowhere else.
type NewToken struct {
	Token
	Secret string `json:"token"`
}

// TokenOf converts a token as it stands at a time.
func TokenOf(t tokens.Token, now time.Time) Token {
	v := Token{ID: t.ID, Role: string(t.Role), Label: t.Label, Created: Time(t.Created), Expired: t.Expired(now)}
	if !t.Expires.IsZero() {
		at := Time(t.Expires)
		v.Expires = &at
	}
	return v
}
