package contract

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

func compiled(t *testing.T, rules ...string) *policy.Policy {
	t.Helper()
	var o profile.Options
	for _, value := range rules {
		o.Overrides = append(o.Overrides, profile.Override{Key: "net", Value: value, Origin: profile.OriginCode})
	}
	p, err := profile.Load(o)
	require.NoError(t, err)
	pol, _, err := policy.Compile(p, policy.Context{Cwd: "/", Home: "/"})
	require.NoError(t, err)
	return pol
}

func TestDomainsNeedAProviderThatSeesLookUps(t *testing.T) {
	pol := compiled(t, "ALLOW|TCP|192.0.2.1|443|OUT")
	assert.NoError(t, RefuseDomains(pol, "subprocess"))
	for _, rule := range []string{"ALLOW|TCP|*.example.com|443|OUT", "DENY|TCP|*.example.com|443|OUT"} {
		err := RefuseDomains(compiled(t, rule), "subprocess")
		require.ErrorContains(t, err, "names below example.com can only be held where names are mediated live")
		assert.ErrorContains(t, err, "os-sandbox=subprocess does not (os-sandbox=landlock does)\nName the hosts one by one")
	}
}
