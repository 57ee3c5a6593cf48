/* SPDX-License-Identifier: GPL-2.0 */
/* Not <errno.h>: that includes a file of this name. */
#include <asm/errno.h>
