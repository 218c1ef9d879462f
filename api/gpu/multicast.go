package gpu

import "strings"

// MulticastEnv asks for multicast where nothing else does.
const MulticastEnv = "TANDEM_MULTICAST"

// multicastSwitch is an environment variable that turns multicast off for one
// of the libraries that use it.
type multicastSwitch struct {
	name string
	off  string   // the value that turns it off
	on   []string // the values that leave it on; any other is taken as off
}

var multicastSwitches = []multicastSwitch{
	{"NCCL_NVLS_ENABLE", "0", []string{"", "1", "2"}},
	{"NVSHMEM_DISABLE_NVLS", "1", []string{"", "0"}},
	{"TORCH_SYMM_MEM_DISABLE_MULTICAST", "1", []string{"", "0"}},
}

// MulticastPolicy says whether multicast objects may be made: nil, or why not
// (ErrMulticastOff). They are off unless asked for, by the caller or by
// TANDEM_MULTICAST=1, and where the environment turns them off for any library
// that has a switch. What the device can do is a further question, answered by
// its attribute and never by trying. getenv is os.Getenv or a stand-in.
func MulticastPolicy(asked bool, getenv func(string) string) error {
	if !asked && getenv(MulticastEnv) != "1" {
		return Refuse("multicast", ErrMulticastOff, "it was not asked for (multicast=on or %s=1 does)", MulticastEnv)
	}
	for _, s := range multicastSwitches {
		v := strings.TrimSpace(getenv(s.name))
		allowed := false
		for _, on := range s.on {
			allowed = allowed || v == on
		}
		if !allowed {
			return Refuse("multicast", ErrMulticastOff, "the environment has %s=%s", s.name, v)
		}
	}
	return nil
}

// MulticastOffEnv are the switches, each as NAME=VALUE, that keep a child
// process off multicast whatever library it uses. Children are started with
// them unless multicast was allowed here.
func MulticastOffEnv() []string {
	env := []string{MulticastEnv + "=0"}
	for _, s := range multicastSwitches {
		env = append(env, s.name+"="+s.off)
	}
	return env
}
