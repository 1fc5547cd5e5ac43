#include "dispatch.hpp"

#include <stdexcept>

namespace safecf {

extern const Kernels kernels_generic;
#ifdef SAFECF_X86
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

std::vector<const Kernels*> available_kernels() {
  std::vector<const Kernels*> found;
#ifdef SAFECF_X86
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
    found.push_back(&kernels_avx512);
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
