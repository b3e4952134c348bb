// Collectives from one rank to all, and back.
#pragma once

#include "replay/algorithms.hpp"

namespace wulf {

// nullptr of a collective that is none of them.
const Algorithms *rooted(trace_kind kind);

// Parts of others.
void bcast_linear(Writer &to);
void bcast_nearest_first(Writer &to);
void reduce_linear(Writer &to);
void reduce_binomial(Writer &to, uint64_t bytes);
void gather_one_by_one(Writer &to);
void scatter_linear(Writer &to);
void scatter_one_by_one(Writer &to);

// Of sums (algorithms.cpp).
void reduce_rabenseifner(Writer &to);

} // namespace wulf
