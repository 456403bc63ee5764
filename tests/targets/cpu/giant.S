/*
 * giant.S: three functions far apart in a lot of text; each calls the next. None has a frame
 * pointer, and the outermost sets it to 0. FILLERS functions of FILLER_BYTES lie between two.
 */
	.macro fillers
	.rept FILLERS
	.cfi_startproc
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.fill	FILLER_BYTES, 1, 0x90
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
	.endr
	.endm

	.macro begin name
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	.endm

	.macro end name
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text
	begin	near
	sub	$40, %rsp
	.cfi_adjust_cfa_offset 40
	mov	$100000, %ecx
1:	dec	%ecx
	jnz	1b
	add	$40, %rsp
	.cfi_adjust_cfa_offset -40
	end	near

	fillers
	begin	middle
	sub	$72, %rsp
	.cfi_adjust_cfa_offset 72
	call	near
	add	$72, %rsp
	.cfi_adjust_cfa_offset -72
	end	middle

	fillers
	begin	far
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbp, -16
	xor	%ebp, %ebp
	call	middle
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	end	far
	.section .note.GNU-stack, "", @progbits
