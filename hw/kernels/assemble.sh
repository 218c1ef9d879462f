#!/bin/sh
# assemble.sh [PTXAS]: assembles the committed PTX with a real ptxas for every
# architecture that it is meant for.
set -eu
cd "$(dirname "$0")"
ptxas=${1:-ptxas}
for arch in sm_90 sm_100 sm_103; do
	for ptx in *.ptx; do
		"$ptxas" -arch="$arch" -o /dev/null "$ptx"
	done
	echo "$arch"
done
