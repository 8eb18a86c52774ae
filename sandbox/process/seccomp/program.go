//go:build linux

package seccomp

import "golang.org/x/sys/unix"

// program is a filter being written. Its one rule makes it easy to audit: code that loads an argument ends in a return on
// every path, so a comparison of system call numbers never sees anything but the number. Arguments are compared by their
// low 32 bits, because that is all the kernel looks at in those that we compare: rubbish in the high word must neither
// avoid a refusal nor cause one.
type program struct{ code []unix.SockFilter }

func (p *program) add(code uint16, k uint32, yes, no uint8) {
	p.code = append(p.code, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k})
}

func (p *program) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }

func (p *program) ret(action uint32) { p.add(unix.BPF_RET|unix.BPF_K, action, 0, 0) }

// unless returns action when the loaded value is not k.
func (p *program) unless(k, action uint32) {
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k, 1, 0)
	p.ret(action)
}

// atLeast returns action when the loaded value is k or more.
func (p *program) atLeast(k, action uint32) {
	p.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, k, 0, 1)
	p.ret(action)
}

// when runs a block, which must end in a return on every path, if the loaded value is n.
func (p *program) when(n int, block []unix.SockFilter) {
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, uint32(n), 0, uint8(len(block)))
	p.code = append(p.code, block...)
}

// allow returns Allow for the given sorted numbers; neighbours share one comparison.
func (p *program) allow(numbers []int) {
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		p.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, uint32(numbers[i]), 0, 2)
		p.add(unix.BPF_JMP|unix.BPF_JGT|unix.BPF_K, uint32(numbers[last]), 1, 0)
		p.ret(Allow)
		i = last + 1
	}
}

func ret(action uint32) []unix.SockFilter {
	var b program
	b.ret(action)
	return b.code
}

// refuseBits refuses a call whose argument has one of the bits, and allows it otherwise.
func refuseBits(argument int, bits uint32) []unix.SockFilter {
	var b program
	b.load(offArgs + 8*uint32(argument))
	b.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, bits, 0, 1)
	b.ret(Refuse(unix.EPERM))
	b.ret(Allow)
	return b.code
}

// refuseValues refuses a call whose argument is one of the values, and allows it otherwise.
func refuseValues(argument int, values ...uint32) []unix.SockFilter {
	var b program
	b.load(offArgs + 8*uint32(argument))
	for _, v := range values {
		b.when(int(v), ret(Refuse(unix.EPERM)))
	}
	b.ret(Allow)
	return b.code
}

// allowValues allows a call whose argument is one of the values; action is for every other.
func allowValues(argument int, action uint32, values ...uint32) []unix.SockFilter {
	var b program
	b.load(offArgs + 8*uint32(argument))
	for _, v := range values {
		b.when(int(v), ret(Allow))
	}
	b.ret(action)
	return b.code
}
