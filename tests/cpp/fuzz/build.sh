#!/usr/bin/env bash
# build.sh JOBS: builds the fuzz targets with Clang into build/fuzz; `python -m soak.fuzzing` runs
# them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
jobs=$1 build=build/fuzz

has_fuzzer() {
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    "$1" -x c++ - -fsanitize=fuzzer,address -o /dev/null 2> /dev/null
}
compiler=
for name in clang++ clang++-{22..14}; do
  if command -v "$name" > /dev/null && has_fuzzer "$name"; then compiler=$name && break; fi
done
if [ -z "$compiler" ]; then
  echo 'fuzz: skipped, there is no Clang with libFuzzer (Debian: clang-19 libclang-rt-19-dev)'
  exit 0
fi

cmake -S tests/cpp -B $build -DSAFECF_SANITIZE=fuzzer -DCMAKE_CXX_COMPILER="$compiler" > /dev/null
cmake --build $build -j"$jobs" > $build/build.log 2>&1 || { cat $build/build.log && exit 1; }
