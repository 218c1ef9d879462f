package vm

// Evaluator gives what a kernel makes of two halves, without the memory around:
// its first two instructions load them, its first access after that stores the
// result, and between them is arithmetic only.
func Evaluator(k *Kernel) func(a, b uint64) uint64 {
	t := &thread{regs: make([]uint64, k.regs), code: k.code}
	first, second := k.code[0].vec[0].reg, k.code[1].vec[0].reg
	end := 2 // the store
	for k.code[end].kind != kMem {
		end++
	}
	return func(a, b uint64) uint64 {
		t.regs[first], t.regs[second], t.pc = a, b, 2
		t.run(end - 2)
		return t.value(&k.code[end].vec[0]) & 0xFFFF
	}
}
