// Package asm reads PTX text into a [Module]: variables, functions, parameters,
// registers and instructions with their modifiers, operands and places.
//
// It reads the whole of PTX's syntax as compilers write it and gives meaning to
// none of it: what an instruction does, and which modifiers it takes, is for
// package vm to say. What it cannot read is an *[Error] with file and line.
//
// The rule users break: a register is named by [Operand].Reg, an index into
// [Func].Regs, and not by its text. Two scopes may both declare a %p.
package asm
