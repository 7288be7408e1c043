/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */
/* The programs of capture.bpf.c without the frames of interpreted programs: for kernels that refuse those. */
#define WITHOUT_SCRIPTS
#include "capture.bpf.c"
