#include "dispatch.hpp"

#include <stdexcept>
#ifdef SAFECF_AMX
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace safecf {

extern const Kernels kernels_generic;
#ifdef SAFECF_X86
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif
#ifdef SAFECF_AMX
extern const Products products_amx;

namespace {

// Whether the CPU has tiles of bfloat16, and the kernel lets this process use them.
bool has_amx() {
  constexpr unsigned kBfloat16 = 1u << 22, kTiles = 1u << 24;
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & kBfloat16) && (d & kTiles) &&
         syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

// The kernels of AVX-512, with rough products on tiles.
const Kernels* kernels_amx() {
  static const Kernels found = [] {
    Kernels kernels = kernels_avx512;
    kernels.name = "amx";
    kernels.rough_products = products_amx;
    return kernels;
  }();
  static const bool runs = has_amx();
  return runs ? &found : nullptr;
}

}  // namespace
#endif

std::vector<const Kernels*> available_kernels() {
  std::vector<const Kernels*> found;
#ifdef SAFECF_X86
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
#ifdef SAFECF_AMX
    if (const Kernels* const amx = kernels_amx()) found.push_back(amx);
#endif
    found.push_back(&kernels_avx512);
  }
  if (avx2) found.push_back(&kernels_avx2);
#endif
  found.push_back(&kernels_generic);
  return found;
}

const Kernels& kernels_named(const std::string& name) {
  std::string known = "'auto'";
  for (const Kernels* table : available_kernels()) {
    if (name == "auto" || table->name == name) return *table;
    known += std::string(", '") + table->name + "'";
  }
  throw std::invalid_argument("this machine has no kernels '" + name + "'; it has " + known);
}

const RowSolver& row_solver_named(const Kernels& kernels, const std::string& name) {
  for (const RowSolver& solver : kernels.row_solvers)
    if (name == solver.name) return solver;
  throw std::invalid_argument("there is no row solver '" + name + "'");
}

}  // namespace safecf
