package redact

// An alphabet is a set of bytes.
type alphabet [256]bool

func newAlphabet(ranges string, more string) *alphabet {
	a := new(alphabet)
	for i := 0; i+1 < len(ranges); i += 2 {
		for c := int(ranges[i]); c <= int(ranges[i+1]); c++ {
			a[c] = true
		}
	}
	for i := 0; i < len(more); i++ {
		a[more[i]] = true
	}
	return a
}

var (
	digits   = newAlphabet("09", "")
	letters  = newAlphabet("azAZ", "")
	hexa     = newAlphabet("09afAF", "")
	upper    = newAlphabet("09AZ", "")
	alnum    = newAlphabet("09azAZ", "")
	word     = newAlphabet("09azAZ", "_")
	dashed   = newAlphabet("09azAZ", "_-")
	dotted   = newAlphabet("09azAZ", "_-.")
	based    = newAlphabet("09azAZ", "+/=_-")
	bearable = newAlphabet("09azAZ", "-._~+/=%") // RFC 6750 2.1, and escapes
)

// run returns the end of the run of a's bytes from i on, at most most bytes.
func (a *alphabet) run(t []byte, i, most int) int {
	end := min(len(t), i+most)
	for i < end && a[t[i]] {
		i++
	}
	return i
}

// token is a kind of secret that begins with a literal of its issuer, in this
// case, and goes on with at least least bytes of an alphabet. The whole run goes:
// a token glued to other text is replaced with it.
type token struct {
	name    string
	prefix  string
	least   int
	of      *alphabet
	bounded bool // a letter or digit before the prefix makes it something else
	exact   bool // so does a longer run
	digit   bool // so does a run without a digit: words joined by dashes
}

// tokens are the shapes that issuers publish in their documentation, with
// lengths somewhat below theirs: one that was cut when it was logged still goes.
func tokens() []token {
	return []token{
		{name: "aws-access-key-id", prefix: "AKIA", least: 16, of: upper, bounded: true, exact: true},
		{name: "aws-access-key-id", prefix: "ASIA", least: 16, of: upper, bounded: true, exact: true},
		{name: "aws-access-key-id", prefix: "ABIA", least: 16, of: upper, bounded: true, exact: true},
		{name: "aws-access-key-id", prefix: "ACCA", least: 16, of: upper, bounded: true, exact: true},
		{name: "google-api-key", prefix: "AIza", least: 30, of: dashed},
		{name: "google-oauth-secret", prefix: "GOCSPX-", least: 20, of: dashed},
		{name: "google-oauth-token", prefix: "ya29.", least: 20, of: dotted},
		{name: "google-oauth-token", prefix: "1//0", least: 30, of: dashed, bounded: true},
		{name: "github-token", prefix: "ghp_", least: 20, of: word},
		{name: "github-token", prefix: "gho_", least: 20, of: word},
		{name: "github-token", prefix: "ghu_", least: 20, of: word},
		{name: "github-token", prefix: "ghs_", least: 20, of: word},
		{name: "github-token", prefix: "ghr_", least: 20, of: word},
		{name: "github-token", prefix: "github_pat_", least: 20, of: word},
		{name: "gitlab-token", prefix: "glpat-", least: 16, of: dotted},
		{name: "gitlab-token", prefix: "gldt-", least: 16, of: dotted},
		{name: "gitlab-token", prefix: "glrt-", least: 16, of: dotted},
		{name: "gitlab-token", prefix: "glptt-", least: 16, of: dotted},
		{name: "gitlab-token", prefix: "glcbt-", least: 16, of: dotted},
		{name: "gitlab-token", prefix: "glft-", least: 16, of: dotted},
		{name: "gitlab-token", prefix: "glimt-", least: 16, of: dotted},
		{name: "gitlab-token", prefix: "glagent-", least: 16, of: dotted},
		{name: "gitlab-token", prefix: "glsoat-", least: 16, of: dotted},
		{name: "gitlab-token", prefix: "gloas-", least: 16, of: dotted},
		{name: "slack-token", prefix: "xoxa-", least: 10, of: dashed},
		{name: "slack-token", prefix: "xoxb-", least: 10, of: dashed},
		{name: "slack-token", prefix: "xoxe-", least: 10, of: dashed},
		{name: "slack-token", prefix: "xoxe.", least: 10, of: dotted},
		{name: "slack-token", prefix: "xoxp-", least: 10, of: dashed},
		{name: "slack-token", prefix: "xoxr-", least: 10, of: dashed},
		{name: "slack-token", prefix: "xoxs-", least: 10, of: dashed},
		{name: "slack-token", prefix: "xapp-", least: 10, of: dashed},
		{name: "slack-webhook", prefix: "hooks.slack.com/services/", least: 20, of: based},
		{name: "slack-webhook", prefix: "hooks.slack.com/workflows/", least: 20, of: based},
		{name: "discord-webhook", prefix: "discord.com/api/webhooks/", least: 20, of: based},
		{name: "discord-webhook", prefix: "discordapp.com/api/webhooks/", least: 20, of: based},
		{name: "stripe-key", prefix: "sk_live_", least: 10, of: word},
		{name: "stripe-key", prefix: "sk_test_", least: 10, of: word},
		{name: "stripe-key", prefix: "rk_live_", least: 10, of: word},
		{name: "stripe-key", prefix: "rk_test_", least: 10, of: word},
		{name: "webhook-secret", prefix: "whsec_", least: 16, of: based},
		{name: "anthropic-key", prefix: "sk-ant-", least: 16, of: dashed},
		{name: "openai-key", prefix: "sk-proj-", least: 16, of: dashed},
		{name: "openai-key", prefix: "sk-svcacct-", least: 16, of: dashed},
		{name: "openai-key", prefix: "sk-admin-", least: 16, of: dashed},
		{name: "openai-key", prefix: "sk-", least: 20, of: dashed, bounded: true, digit: true}, // and of the many who took the form over
		{name: "npm-token", prefix: "npm_", least: 30, of: alnum},
		{name: "pypi-token", prefix: "pypi-AgE", least: 16, of: dashed},
		{name: "rubygems-key", prefix: "rubygems_", least: 30, of: hexa},
		{name: "docker-token", prefix: "dckr_pat_", least: 16, of: dashed},
		{name: "docker-token", prefix: "dckr_oat_", least: 16, of: dashed},
		{name: "huggingface-token", prefix: "hf_", least: 30, of: alnum, bounded: true},
		{name: "groq-key", prefix: "gsk_", least: 30, of: alnum, bounded: true},
		{name: "xai-key", prefix: "xai-", least: 40, of: alnum, bounded: true},
		{name: "perplexity-key", prefix: "pplx-", least: 30, of: alnum},
		{name: "replicate-token", prefix: "r8_", least: 30, of: alnum, bounded: true},
		{name: "sendgrid-key", prefix: "SG.", least: 40, of: dotted, bounded: true},
		{name: "twilio-key", prefix: "SK", least: 32, of: hexa, bounded: true, exact: true},
		{name: "mailgun-key", prefix: "key-", least: 32, of: hexa, bounded: true, exact: true},
		{name: "digitalocean-token", prefix: "dop_v1_", least: 32, of: hexa},
		{name: "digitalocean-token", prefix: "doo_v1_", least: 32, of: hexa},
		{name: "digitalocean-token", prefix: "dor_v1_", least: 32, of: hexa},
		{name: "databricks-token", prefix: "dapi", least: 32, of: hexa, bounded: true},
		{name: "vault-token", prefix: "hvs.", least: 20, of: dashed},
		{name: "vault-token", prefix: "hvb.", least: 20, of: dashed},
		{name: "vault-token", prefix: "hvr.", least: 20, of: dashed},
		{name: "shopify-token", prefix: "shpat_", least: 30, of: hexa},
		{name: "shopify-token", prefix: "shpca_", least: 30, of: hexa},
		{name: "shopify-token", prefix: "shppa_", least: 30, of: hexa},
		{name: "shopify-token", prefix: "shpss_", least: 30, of: hexa},
		{name: "square-token", prefix: "sq0atp-", least: 20, of: dashed},
		{name: "square-token", prefix: "sq0csp-", least: 20, of: dashed},
		{name: "linear-key", prefix: "lin_api_", least: 30, of: alnum},
		{name: "notion-token", prefix: "ntn_", least: 30, of: alnum, bounded: true},
		{name: "figma-token", prefix: "figd_", least: 30, of: dashed},
		{name: "grafana-token", prefix: "glsa_", least: 30, of: word},
		{name: "grafana-token", prefix: "glc_eyJ", least: 30, of: based},
		{name: "newrelic-key", prefix: "NRAK-", least: 20, of: alnum},
		{name: "doppler-token", prefix: "dp.pt.", least: 30, of: alnum, bounded: true},
		{name: "doppler-token", prefix: "dp.st.", least: 30, of: dotted, bounded: true},
		{name: "planetscale-token", prefix: "pscale_tkn_", least: 30, of: dotted},
		{name: "planetscale-token", prefix: "pscale_pw_", least: 30, of: dotted},
		{name: "postman-key", prefix: "PMAK-", least: 30, of: dashed},
		{name: "sentry-token", prefix: "sntrys_", least: 30, of: based},
		{name: "sentry-token", prefix: "sntryu_", least: 30, of: hexa},
		{name: "supabase-token", prefix: "sbp_", least: 30, of: hexa},
		{name: "atlassian-token", prefix: "ATATT3", least: 30, of: based},
		{name: "heroku-key", prefix: "HRKU-", least: 30, of: dashed},
		{name: "tailscale-key", prefix: "tskey-", least: 20, of: dashed},
		{name: "fly-token", prefix: "fo1_", least: 30, of: dashed, bounded: true},
		{name: "fly-token", prefix: "FlyV1 fm2_", least: 30, of: based},
		{name: "age-key", prefix: "AGE-SECRET-KEY-1", least: 30, of: upper},
		{name: "dynatrace-token", prefix: "dt0c01.", least: 30, of: dotted},
		{name: "mapbox-token", prefix: "sk.eyJ", least: 30, of: dotted, bounded: true},
	}
}

// find is the detector of a token's kind.
func (k *token) find(t []byte, at, n int) (span, bool) {
	if string(t[at:at+n]) != k.prefix || k.bounded && !startsWord(t, at) {
		return span{}, false
	}
	end := k.of.run(t, at+n, len(t))
	rest := end - at - n
	ok := rest >= k.least && (!k.exact || rest == k.least && (end == len(t) || !word[t[end]])) && (!k.digit || has(digits, t[at+n:end]))
	return span{at, end, k.name, specific}, ok
}

func has(a *alphabet, t []byte) bool {
	for _, c := range t {
		if a[c] {
			return true
		}
	}
	return false
}

// startsWord reports whether a word can begin at i: no letter or digit stands
// before it, or one that ends an escape (a \n, a \u0022, a %3D in a text that
// quotes another).
func startsWord(t []byte, i int) bool {
	switch {
	case i == 0 || !alnum[t[i-1]]:
		return true
	case i >= 2 && t[i-2] == '\\' && (t[i-1] == 'n' || t[i-1] == 't' || t[i-1] == 'r'):
		return true
	case i >= 6 && t[i-6] == '\\' && t[i-5] == 'u':
		return true
	}
	return i >= 3 && t[i-3] == '%' && hexa[t[i-2]] && hexa[t[i-1]]
}
