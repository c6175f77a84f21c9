package page

import (
	"reflect"

	"childlog/cmd/childlog/internal/redact"
	"childlog/cmd/childlog/internal/review"
	"childlog/cmd/childlog/internal/term"
)

// cleaner makes text from logs fit for a page.
type cleaner struct {
	filter *redact.Filter // nil: everything stays
	counts redact.Counts
}

func (c *cleaner) text(s string) string {
	if c.filter != nil {
		s = c.filter.String(s, c.counts)
	}
	return term.Escape(s)
}

// review returns a copy of which every string is clean.
func (c *cleaner) review(r *review.Review) *review.Review {
	out := new(review.Review)
	c.copy(reflect.ValueOf(out).Elem(), reflect.ValueOf(*r))
	return out
}

// copy sets to to a copy of from. Values without strings are shared: a page
// changes none.
func (c *cleaner) copy(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.String:
		to.SetString(c.text(from.String()))
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			c.copy(to.Elem(), from.Elem())
		}
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
			for i := range from.Len() {
				c.copy(to.Index(i), from.Index(i))
			}
		}
	case reflect.Map:
		if !from.IsNil() {
			to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
			for it := from.MapRange(); it.Next(); {
				key, value := reflect.New(from.Type().Key()).Elem(), reflect.New(from.Type().Elem()).Elem()
				c.copy(key, it.Key())
				c.copy(value, it.Value())
				to.SetMapIndex(key, value)
			}
		}
	case reflect.Struct:
		for i := range from.NumField() {
			if !from.Type().Field(i).IsExported() {
				to.Set(reflect.Zero(to.Type())) // what can't be cleaned is not shown
				return
			}
		}
		for i := range from.NumField() {
			c.copy(to.Field(i), from.Field(i))
		}
	default:
		to.Set(from)
	}
}
