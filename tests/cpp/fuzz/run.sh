#!/usr/bin/env bash
# run.sh RUNS JOBS: builds the fuzz targets with Clang and runs each RUNS times, and those that take
# indices RUNS times more while a second thread overwrites them. Inputs that lead to new code are kept in
# build/fuzz/corpus, those that fail in build/fuzz/failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
runs=$1 jobs=$2 build=build/fuzz

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

cmake -S tests/cpp/fuzz -B $build -DCMAKE_CXX_COMPILER="$compiler" > /dev/null
cmake --build $build -j"$jobs" > $build/build.log 2>&1 || { cat $build/build.log && exit 1; }

run_target() { # run_target RUNS BUILD TARGET [scribble]
  local name=$3${4:+_$4} log=$2/$3${4:+_$4}.log
  mkdir -p "$2/corpus/$3" "$2/failed"
  if ${4:+env SAFECF_SCRIBBLE=1} "$2/fuzz_$3" -runs="$1" -max_len=400 -rss_limit_mb=4096 \
    -print_final_stats=1 -artifact_prefix="$2/failed/$name-" "$2/corpus/$3" > "$log" 2>&1; then
    awk -v name="$name" '/DONE/ { for (i = 1; i < NF; ++i) if ($i == "cov:") edges = $(i + 1) }
      /number_of_executed_units/ { count = $2 } /average_exec_per_sec/ { rate = $2 }
      END { printf "%-24s %9d executions, %5d per second, %5d edges\n", name, count, rate, edges }' "$log"
  else
    echo "$name failed; the end of $log:"
    tail -40 "$log"
    return 1
  fi
}
export -f run_target
find $build -maxdepth 1 -name 'fuzz_*' -type f -printf '%f\n' | sed s/^fuzz_// | sort |
  awk '{ print $1 } !/^(gram|rotate|to_bfloat16|quantile|kernel)/ { print $1, "scribble" }' |
  xargs -P "$jobs" -L 1 bash -c 'run_target "$0" "$@"' "$runs" $build
