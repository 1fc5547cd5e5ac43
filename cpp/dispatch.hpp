// Which kernels this machine runs.
#pragma once

#include <string>
#include <vector>

#include "kernels/table.hpp"

namespace safecf {

// The tables that this machine can run, best first.
std::vector<const Kernels*> available_kernels();

// The table called `name`, or the best one for "auto". Throws std::invalid_argument.
const Kernels& kernels_named(const std::string& name);

// Throws std::invalid_argument where there is none of this name.
const RowSolver& row_solver_named(const Kernels&, const std::string& name);

}  // namespace safecf
