#!/bin/sh
# assemble.sh [PTXAS]: assembles the committed PTX with a real ptxas for every
# architecture that it is meant for. A kernel that needs a stack is an error: all
# that one keeps fits its registers.
set -eu
cd "$(dirname "$0")"
ptxas=${1:-ptxas}
for arch in sm_90 sm_100 sm_103; do
	for ptx in *.ptx; do
		said=$("$ptxas" -v -arch="$arch" -o /dev/null "$ptx" 2>&1) || { echo "$said" >&2; exit 1; }
		if echo "$said" | grep -q '[1-9][0-9]* bytes \(stack\|spill\)'; then
			echo "$ptx, $arch: a kernel spills" >&2
			echo "$said" | grep -B 1 '[1-9][0-9]* bytes \(stack\|spill\)' >&2
			exit 1
		fi
	done
	echo "$arch"
done
