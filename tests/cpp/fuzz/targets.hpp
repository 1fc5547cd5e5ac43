// The fuzz targets, one per native entry.
#pragma once

#include "input.hpp"

namespace safecf::fuzz {

void solve_rows(Input& input);
void gradients(Input& input);
void losses(Input& input);
void update_block(Input& input);
void scores(Input& input);
void scored_losses(Input& input);
void gram(Input& input);
void gram_block(Input& input);
void rotate(Input& input);
void eigen(Input& input);
void to_bfloat16(Input& input);
void transpose(Input& input);
void positions(Input& input);
void search(Input& input);
void ranks(Input& input);
void quantile_sums(Input& input);
void kernel_weights(Input& input);

}  // namespace safecf::fuzz
