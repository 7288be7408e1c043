/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* The architecture that the programs are compiled for (xtask/bpf.sh).
 *
 * A header of an architecture defines:
 *   struct user_pt_regs       registers as user space left them, as bpf_task_pt_regs and the contexts of programs give them
 *   struct thread_struct, struct thread_info
 *                             fields of the kernel's that the header itself reads
 *   PAGE_SHIFT                base-2 logarithm of the bytes of a page
 *   USER_PC, USER_SP, USER_FP(regs)
 *   IS_USER(regs)             whether they are of user code
 *   IS_USER_64, IS_USER_32(regs)
 *                             whether they are of 64-bit, of 32-bit user code
 *   IS_COMPAT(task)           whether the task is in a 32-bit system call
 *   THREAD_POINTER(task)      the address that thread-local storage is relative to; 0: not known
 *   IS_DESCRIPTOR(pointer, id)
 *                             whether the thread with this pointer is the one whose descriptor (pthread_self) has this address
 *   CALL_NUMBER(regs)         the number of the system call that a task is in; negative: none
 *   CALL_ARGUMENT_0, CALL_ARGUMENT_1(regs)
 *   call_arguments(to, regs, compat)
 *   user_registers(to, regs)
 * and, where calls leave the return address in a register, USER_LINK(regs), that register.
 * Instructions, return addresses and signal frames, as walks need them, are in x86_64walk.h and aarch64walk.h. */
#ifndef PLUMB_ARCH_H
#define PLUMB_ARCH_H

#ifdef __TARGET_ARCH_x86
#include "x86_64.h"
#elif defined(__TARGET_ARCH_arm64)
#include "aarch64.h"
#else
#error "there is no header for this architecture"
#endif

#endif
