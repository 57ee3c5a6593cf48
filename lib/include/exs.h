/* SPDX-License-Identifier: MIT */
#ifndef _EXS_H
#define _EXS_H
#include <sys/exs.h>
#endif
