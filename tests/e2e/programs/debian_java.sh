#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# debian.sh between two machines, of a server and a client in a JVM, which takes long to start.
exec env APART=java APART_ALONE=java "$(dirname "$0")/debian.sh" "$@"
