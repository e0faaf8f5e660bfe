// The experts of a layer with packed matrices: which pieces of work there are for the threads, and
// what each computes. The results of a row do not depend on the rows beside it.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/experts/expert_groups.h"
#include "kernels/activation.h"
#include "model/packed_weight.h"

namespace knap {

// A matrix of every expert with what is added to its product; null: none.
struct ExpertMatrix {
    const PackedWeight* weight = nullptr;
    const float* bias = nullptr;  // [n_out, n_experts]

    const float* bias_of(int expert) const;
};

// Both may be null.
ExpertMatrix expert_matrix(const ggml_tensor* weight, const ggml_tensor* bias);

// Some groups of the matrix of one expert, times rows that use it.
struct ExpertTile {
    ExpertBlock block;  // without slots: nothing to do
    int first_group = 0;
    int n_groups = 0;
};

// The product of all rows with a matrix of each of their experts, as items for threads. How many
// there are follows from the number of slots alone, because a thread that comes late to a phase may
// find the groups of another layer; some items are empty. `groups` are read with the item.
class ExpertTiles {
  public:
    ExpertTiles(const ExpertGroups& groups, int n_slots, const ExpertMatrix& by, int n_threads);

    int size() const;
    ExpertTile operator[](int i) const;

  private:
    // As many as the scratch has room for.
    static constexpr int kMaxGroups = 8;

    const ExpertGroups& groups_;
    int n_blocks_;     // at most
    int n_groups_;     // of one matrix
    int tile_groups_;  // of an item
    friend class ExpertScratch;
};

// Memory of one thread.
class ExpertScratch {
  public:
    // For rows of so many bytes.
    void reserve(std::size_t row_bytes);
    std::size_t bytes() const;

    std::byte* inputs() { return inputs_.data(); }
    float* gates() { return numbers_.data(); }
    float* ups();

  private:
    std::vector<std::byte> inputs_;
    std::vector<float> numbers_;
};

struct ExpertMlp {
    ExpertMatrix gate, up, down;
    Activation activation = Activation::silu;

    // The activated gate times up, of a tile of `gate`: `inputs` are the rows of the pass in the
    // form that `gate` takes, `hidden` has a row for every slot in the form that `down` takes.
    void run_gates(const ExpertGroups& groups,
                   const ExpertTile& tile,
                   const std::byte* inputs,
                   ExpertScratch& scratch,
                   std::byte* hidden) const;
    // The result of an expert times its weight, of a tile of `down`: [n_embd] for every slot.
    void run_down(const ExpertGroups& groups,
                  const ExpertTile& tile,
                  const std::byte* hidden,
                  float* results) const;
};

// Adds up numbers [first, first + n) of what the experts of a row have given, in the order of their
// ranks.
void sum_experts(const ExpertGroups& groups,
                 const float* results,
                 int n_embd,
                 int row,
                 int first,
                 int n,
                 float* out);

}  // namespace knap
