#include "cpu/cpu_pass.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "cpu/layer_heads.h"
#include "cpu/tiles.h"
#include "cpu/weights_ahead.h"
#include "forward/needed_modules.h"
#include "graph/attention/cpu_attention.h"
#include "kernels/attention/attention.h"
#include "kernels/matmul/packed_rows.h"
#include "kernels/row_math.h"

namespace knap {
namespace {

// Up to so many numbers, every thread prepares the inputs of a product for itself: that takes less
// time than to wait for each other once more.
constexpr int kOwnInputs = 2048;
// Rows of logits that there is memory for from the first pass on. With several sessions the number
// of a pass depends on who meets in it: without this, a server's memory grew for thousands of
// requests, until the largest of such passes had come.
constexpr int kUsualLogitRows = 32;

}  // namespace

CpuPass::CpuPass(CpuModel model, int max_rows, int n_threads)
    : model_(std::move(model)), max_rows_(max_rows), scratch_(static_cast<std::size_t>(n_threads)) {
    const ModelConfig& config = model_.config;
    const auto n_rows = static_cast<std::size_t>(max_rows);
    std::size_t input_bytes = 0;
    std::size_t own_bytes = 0;
    std::size_t hidden_bytes = 0;
    const auto reserve = [&](const CpuMatrix& of) {
        const std::size_t bytes = row_bytes(*of.matrix);
        input_bytes = std::max(input_bytes, bytes);
        const int n_own = std::max(1, kOwnInputs / of.matrix->n_in);
        own_bytes = std::max(own_bytes, bytes * static_cast<std::size_t>(n_own));
    };
    for (const CpuLayer& layer : model_.layers) {
        reserve(layer.q);
        reserve(layer.o);
        if (layer.has_dense_mlp()) {
            reserve(layer.gate);
            hidden_bytes = std::max(hidden_bytes, row_bytes(*layer.down.matrix));
        }
        if (layer.has_experts()) {
            reserve(layer.router);
            const PackedMatrix& gate = layer.experts.gate.weight->matrix;
            input_bytes = std::max(input_bytes, row_bytes(gate));
            experts_.reserve(layer, config.n_experts_used(), max_rows);
            for (Scratch& scratch : scratch_) {
                scratch.experts.reserve(row_bytes(gate));
            }
        }
    }
    // The head's rows are the stream's, in either form.
    const std::size_t head_bytes = input_row_bytes(InputForm::floats, config.n_embd);
    input_bytes = std::max(input_bytes, head_bytes);
    own_bytes = std::max(own_bytes, std::max(std::size_t{kOwnInputs}, n_embd()) * sizeof(float));
    const HeadUnits units(config.head_dim);
    const int tile_width = std::max(units.n_groups, 2 * Tiles::kMaxGateUnits) * kGroupRows;
    stream_.resize(n_embd() * n_rows);
    queries_.resize(static_cast<std::size_t>(config.n_embd_q()) * n_rows);
    attended_.resize(queries_.size());
    if (config.head_norm == HeadNorm::whole_row) {
        keys_.resize(static_cast<std::size_t>(config.n_embd_kv()) * n_rows);
    }
    const auto keeps_results = [](const CpuLayer& layer) {
        return layer.has_post_norm() || (layer.has_experts() && layer.has_dense_mlp());
    };
    if (std::ranges::any_of(model_.layers, keeps_results)) {
        results_.resize(stream_.size());
    }
    inputs_.resize(input_bytes * n_rows);
    hidden_.resize(hidden_bytes * n_rows);
    for (Scratch& scratch : scratch_) {
        scratch.inputs.resize(own_bytes);
        scratch.tile.resize(static_cast<std::size_t>(tile_width * Tiles::kMaxRows));
    }
}

std::span<float> CpuPass::stream(int n_rows) {
    return std::span(stream_).first(n_embd() * static_cast<std::size_t>(n_rows));
}

std::size_t CpuPass::bytes() const {
    std::size_t n = (stream_.capacity() + queries_.capacity() + attended_.capacity() +
                     keys_.capacity() + results_.capacity() + logits_.capacity()) *
                        sizeof(float) +
                    inputs_.capacity() + hidden_.capacity() + experts_.bytes() + best_.bytes();
    for (const Scratch& scratch : scratch_) {
        n += scratch.inputs.capacity() + scratch.tile.capacity() * sizeof(float) +
             scratch.experts.bytes();
    }
    for (const std::vector<float>& capture : captures_) {
        n += capture.capacity() * sizeof(float);
    }
    return n;
}

class CpuPass::Walk {
  public:
    Walk(CpuPass& pass, const CpuRequest& request, TeamMember& member)
        : pass_(pass),
          model_(pass.model_),
          config_(pass.model_.config),
          request_(request),
          member_(member),
          scratch_(pass.scratch_[static_cast<std::size_t>(member.index())]),
          ahead_(model_, request_, member_),
          n_rows_(request.n_rows),
          n_whole_modules_(
              count_whole_modules(module_range(), [&](int layer) { return attends(layer); })),
          n_modules_(count_modules()) {}

    void run() {
        ahead_.expect_module(2 * request_.entry_layer, n_rows_);
        embed();
        reach(2 * request_.entry_layer);
        for (int layer = request_.entry_layer; layer < request_.exit_layer; ++layer) {
            if (is_over()) {
                return;
            }
            run_attention(layer);
            reach(2 * layer + 1);
            run_mlp(layer);
            reach(2 * layer + 2);
        }
        if (!request_.logit_rows.empty()) {
            run_head();
        }
    }

  private:
    bool attends(int layer) const { return request_.plan->runs(layer, Module::attention); }

    ModuleRange module_range() const {
        return {.entry_layer = request_.entry_layer,
                .exit_layer = request_.exit_layer,
                .captures = request_.captures};
    }
    int count_modules() const {
        return !request_.logit_rows.empty() || request_.gives_stream
                   ? 2 * request_.exit_layer
                   : count_read_modules(module_range(), [&](int layer) { return attends(layer); });
    }

    bool is_over() {
        if (member_.index() == 0 && request_.is_cancelled && request_.is_cancelled()) {
            member_.stop();
        }
        return member_.is_stopped();
    }

    // A phase in which many rows take long: its items are skipped once the pass is over.
    template <typename Work>
    void share_long(int n_items, Work work) {
        constexpr int kManyRows = 16;
        if (n_rows_ < kManyRows) {
            member_.share(n_items, work, while_waiting());
            return;
        }
        member_.share(n_items, [&](int item) {
            if (!is_over()) {
                work(item);
            }
        });
    }

    float* stream_row(int row) const {
        return pass_.stream_.data() + static_cast<std::ptrdiff_t>(row) * config_.n_embd;
    }

    void embed() {
        if (request_.tokens.empty()) {
            return;
        }
        const ggml_tensor& table = *model_.token_embd;
        const auto to_floats = ggml_get_type_traits(table.type)->to_float;
        member_.share(
            n_rows_,
            [&](int row) {
                const auto token =
                    static_cast<std::size_t>(request_.tokens[static_cast<std::size_t>(row)]);
                const std::byte* stored =
                    static_cast<const std::byte*>(table.data) + token * table.nb[1];
                if (table.type == GGML_TYPE_F32) {
                    std::memcpy(stream_row(row), stored, table.nb[1]);
                } else {
                    to_floats(stored, stream_row(row), config_.n_embd);
                }
                scale_row(config_.embedding_scale, config_.n_embd, stream_row(row));
            },
            while_waiting());
    }

    // In small teams hardly anybody waits, and fetching for those who do takes memory from the
    // others: with 2 threads of an AMD EPYC (Zen 4) a step took 4 and 7 % longer in two runs.
    WaitingWork* while_waiting() {
        constexpr int kSmallTeam = 4;
        return member_.n_threads() > kSmallTeam ? &ahead_ : nullptr;
    }

    // The stream is past its first `n_modules` modules.
    void reach(int n_modules) {
        if (n_captured_ < request_.captures.size() && request_.captures[n_captured_] == n_modules) {
            std::vector<float>& capture = pass_.captures_[n_captured_++];
            member_.share(n_rows_, [&](int row) {
                std::copy_n(stream_row(row), config_.n_embd,
                            capture.data() + static_cast<std::ptrdiff_t>(row) * config_.n_embd);
            });
        }
        const auto n_logits = static_cast<int>(request_.logit_rows.size());
        if (n_modules == n_whole_modules_ && n_logits > 0 && n_logits < n_rows_) {
            // In order, because rows move towards the front.
            member_.share(1, [&](int /*item*/) {
                for (int i = 0; i < n_logits; ++i) {
                    const int row = request_.logit_rows[static_cast<std::size_t>(i)];
                    std::memmove(stream_row(i), stream_row(row),
                                 static_cast<std::size_t>(config_.n_embd) * sizeof(float));
                }
            });
            n_rows_ = n_logits;
        }
    }

    // --- inputs of products ---

    // What a thread reads after its last item of a phase; empty: what follows the item.
    using Next = std::span<const std::byte>;

    // Calls work(tile, inputs, next) for every tile, where `inputs` are the rows of the pass in the
    // form of `matrix`, made by prepare(row, out).
    template <typename Prepare, typename Work>
    void share_product(const PackedMatrix& matrix, const Tiles& tiles, Prepare prepare, Work work) {
        const std::size_t n_bytes = row_bytes(matrix);
        const bool is_own = n_rows_ == 1 || n_rows_ * matrix.n_in <= kOwnInputs;
        std::byte* inputs = is_own ? scratch_.inputs.data() : pass_.inputs_.data();
        const auto prepare_row = [&](int row) {
            prepare(row, inputs + static_cast<std::size_t>(row) * n_bytes);
        };
        if (!is_own) {
            member_.share(n_rows_, prepare_row);
        }
        bool is_ready = !is_own;
        share_tiles(matrix, tiles, inputs, [&](const Tile& tile, const std::byte* rows, Next next) {
            if (!is_ready) {
                // Not before this thread has a part in the phase: only then is what it reads still
                // there.
                for (int row = 0; row < n_rows_; ++row) {
                    prepare_row(row);
                }
                is_ready = true;
            }
            work(tile, rows, next);
        });
    }

    // The same with rows that are in that form already.
    template <typename Work>
    void share_tiles(const PackedMatrix& matrix,
                     const Tiles& tiles,
                     const std::byte* inputs,
                     Work work) {
        const std::size_t n_bytes = row_bytes(matrix);
        const int last = member_.share_end(tiles.size()) - 1;
        share_long(tiles.size(), [&](int item) {
            const Tile tile = tiles[item];
            work(tile, inputs + static_cast<std::size_t>(tile.first_row) * n_bytes,
                 item == last ? ahead_.first() : Next());
        });
    }

    // Rows of the stream, normalised if there is a norm.
    auto normed(const float* weight, const PackedMatrix& matrix) const {
        return [this, weight, is_float = takes_floats(matrix)](int row, std::byte* out) {
            const float* x = stream_row(row);
            if (weight == nullptr) {
                copy_row(x, config_.n_embd, is_float, out);
            } else if (is_float) {
                norm_row(x, weight, config_.n_embd, config_.rms_eps, reinterpret_cast<float*>(out));
            } else {
                matmul_kernel().norm_and_quantise(x, weight, config_.n_embd, config_.rms_eps, 0,
                                                  blocks_at(out, config_.n_embd));
            }
        };
    }

    // Rows of what attention has given.
    auto attended(const PackedMatrix& matrix) const {
        return [this, is_float = takes_floats(matrix)](int row, std::byte* out) {
            const int n = config_.n_embd_q();
            copy_row(pass_.attended_.data() + static_cast<std::ptrdiff_t>(row) * n, n, is_float,
                     out);
        };
    }

    // --- products ---

    Tiles tiles_of(const PackedMatrix& matrix) const {
        return {matrix.n_groups(), n_rows_, member_.n_threads()};
    }

    // Groups of a matrix times the rows of a tile, with the bias, into rows of `width` numbers.
    static void multiply(const CpuMatrix& by,
                         int first_group,
                         int n_groups,
                         const std::byte* inputs,
                         int n_rows,
                         float* out,
                         int width,
                         Next next) {
        multiply_groups({.matrix = *by.matrix,
                         .bias = by.bias,
                         .first_group = first_group,
                         .n_groups = n_groups,
                         .inputs = inputs,
                         .n_rows = n_rows,
                         .out = out,
                         .width = width,
                         .next = next});
    }

    // The product, left for what follows it.
    void keep_product(const CpuMatrix& by,
                      const Tile& tile,
                      const std::byte* inputs,
                      Next next) const {
        multiply(by, tile.first_unit, tile.n_units, inputs, tile.n_rows,
                 result_row(tile.first_row) + std::ptrdiff_t{tile.first_unit} * kGroupRows,
                 config_.n_embd, next);
    }

    // Adds the product to the stream, or leaves it for add_results() if a norm follows.
    void add_product(const CpuMatrix& by,
                     const float* post_norm,
                     const Tile& tile,
                     const std::byte* inputs,
                     Next next) const {
        const int width = config_.n_embd;
        if (post_norm != nullptr) {
            keep_product(by, tile, inputs, next);
            return;
        }
        float* out = stream_row(tile.first_row) + std::ptrdiff_t{tile.first_unit} * kGroupRows;
        if (by.bias == nullptr && config_.residual_scale == 1.0f) {
            const PackedMatrix part = slice(*by.matrix, tile.first_unit, tile.n_units);
            matmul_kernel().multiply({.matrix = &part,
                                      .n_groups = part.n_groups(),
                                      .inputs = inputs,
                                      .n_rows = tile.n_rows,
                                      .out = out,
                                      .added = out,
                                      .stride = width,
                                      .next = next});
            return;
        }
        // The product and its bias are added first, and the scale applies to their sum.
        for (int i = 0; i < tile.n_units; ++i) {
            const int group = tile.first_unit + i;
            float* sums = scratch_.tile.data();
            multiply(by, group, 1, inputs, tile.n_rows, sums, kGroupRows,
                     i == tile.n_units - 1 ? next : Next());
            scale_row(config_.residual_scale, tile.n_rows * kGroupRows, sums);
            const int n = std::min(kGroupRows, by.matrix->n_out - group * kGroupRows);
            for (int row = 0; row < tile.n_rows; ++row) {
                add_row(sums + row * kGroupRows, n,
                        out + static_cast<std::ptrdiff_t>(row) * width + i * kGroupRows);
            }
        }
    }

    float* result_row(int row) const {
        return pass_.results_.data() + static_cast<std::ptrdiff_t>(row) * config_.n_embd;
    }

    // Adds the results of a module to the stream, if a norm follows it.
    void add_results(const float* post_norm) {
        if (post_norm == nullptr) {
            return;
        }
        member_.share(n_rows_, [&](int row) {
            float* result = result_row(row);
            norm_row(result, post_norm, config_.n_embd, config_.rms_eps, result);
            scale_row(config_.residual_scale, config_.n_embd, result);
            add_row(result, config_.n_embd, stream_row(row));
        });
    }

    // --- modules ---

    void run_attention(int layer) {
        if (!attends(layer)) {
            return;
        }
        const bool gives_result = 2 * layer < n_modules_;
        ahead_.expect_output(layer, n_rows_);
        run_heads(layer, gives_result);
        if (!gives_result) {
            return;
        }
        const int group = request_.groups->group_of(request_.plan->level(layer, Module::attention),
                                                    config_.layer(layer).window);
        const AttentionTasks& tasks = *request_.tasks[static_cast<std::size_t>(group)];
        const CpuMatrix& o = model_.layer(layer).o;
        const AttentionData data{.queries = pass_.queries_.data(),
                                 .out = pass_.attended_.data(),
                                 .cached = cached(layer),
                                 .sinks = model_.layer(layer).attn_sinks,
                                 .next = ahead_.first()};
        share_long(tasks.n_shares(), [&](int share) { run_attention_share(data, tasks, share); });
        const float* post_norm = model_.layer(layer).attn_post_norm;
        ahead_.expect_module(2 * layer + 1, n_rows_);
        share_product(*o.matrix, tiles_of(*o.matrix), attended(*o.matrix),
                      [&](const Tile& tile, const std::byte* inputs, Next next) {
                          add_product(o, post_norm, tile, inputs, next);
                      });
        add_results(post_norm);
    }

    const KvTensors& cached(int layer) const {
        return model_.cached[static_cast<std::size_t>(layer - model_.first_layer)];
    }

    // Queries, keys and values: a unit of heads is multiplied, rotated and stored.
    void run_heads(int layer, bool has_queries) {
        const CpuLayer& weights = model_.layer(layer);
        const HeadUnits units(config_.head_dim);
        const int n_key_units = units.count(config_.n_kv_heads);
        const int n_query_units = has_queries ? units.count(config_.n_heads) : 0;
        const LayerHeads heads(config_, layer, weights, cached(layer), request_);
        const bool waits = heads.norms_rows();  // for whole rows
        const auto give_query = [&](int head, int row, float* x) {
            if (waits) {
                std::copy_n(x, config_.head_dim, query(row, head));
            } else {
                heads.give_query(row, x, query(row, head));
            }
        };
        const auto store_key = [&](int head, int row, float* x) {
            if (waits) {
                std::copy_n(x, config_.head_dim, key(row, head));
            } else {
                heads.store_key(head, row, x);
            }
        };
        const auto store_value = [&](int head, int row, const float* x) {
            heads.store_value(head, row, x);
        };
        const Tiles tiles(n_query_units + 2 * n_key_units, n_rows_, member_.n_threads(), 1);
        share_product(
            *weights.q.matrix, tiles, normed(weights.attn_norm, *weights.q.matrix),
            [&](const Tile& tile, const std::byte* inputs, Next next) {
                const int key_unit = tile.first_unit - n_query_units;
                const int value_unit = key_unit - n_key_units;
                if (next.empty() && key_unit == -1) {
                    next = first_weights(*weights.k.matrix, 0);
                } else if (next.empty() && value_unit == -1) {
                    next = first_weights(*weights.v.matrix, 0);
                }
                if (key_unit < 0) {
                    run_unit(units, weights.q, tile.first_unit, tile, inputs, next, give_query);
                } else if (value_unit < 0) {
                    run_unit(units, weights.k, key_unit, tile, inputs, next, store_key);
                } else {
                    run_unit(units, weights.v, value_unit, tile, inputs, next, store_value);
                }
            });
        if (waits) {
            member_.share(n_rows_, [&](int row) {
                heads.give_row(row, has_queries ? query(row, 0) : nullptr, key(row, 0));
            });
        }
    }

    // Calls give(head, row, numbers) for every head of a unit and every row of the tile.
    template <typename Give>
    void run_unit(const HeadUnits& units,
                  const CpuMatrix& by,
                  int unit,
                  const Tile& tile,
                  const std::byte* inputs,
                  Next next,
                  Give give) const {
        const int width = units.n_groups * kGroupRows;
        float* out = scratch_.tile.data();
        multiply(by, unit * units.n_groups, units.n_groups, inputs, tile.n_rows, out, width, next);
        const int first_head = unit * units.n_heads;
        const int n_heads =
            std::min(units.n_heads, by.matrix->n_out / config_.head_dim - first_head);
        for (int row = 0; row < tile.n_rows; ++row) {
            for (int i = 0; i < n_heads; ++i) {
                give(first_head + i, tile.first_row + row,
                     out + static_cast<std::ptrdiff_t>(row) * width +
                         static_cast<std::ptrdiff_t>(i) * config_.head_dim);
            }
        }
    }

    float* query(int row, int head) const {
        return pass_.queries_.data() + static_cast<std::ptrdiff_t>(row) * config_.n_embd_q() +
               static_cast<std::ptrdiff_t>(head) * config_.head_dim;
    }
    float* key(int row, int head) const {
        return pass_.keys_.data() + static_cast<std::ptrdiff_t>(row) * config_.n_embd_kv() +
               static_cast<std::ptrdiff_t>(head) * config_.head_dim;
    }

    void run_mlp(int layer) {
        const CpuLayer& weights = model_.layer(layer);
        if (!weights.has_mlp() || !request_.plan->runs(layer, Module::mlp) ||
            2 * layer + 1 >= n_modules_) {
            return;
        }
        if (weights.has_experts()) {
            run_experts(layer);
            return;
        }
        ahead_.expect_down(layer, n_rows_);
        share_gates(weights);
        ahead_.expect_module(2 * layer + 2, n_rows_);
        share_down(weights, [&](const Tile& tile, const std::byte* inputs, Next next) {
            add_product(weights.down, weights.ffn_post_norm, tile, inputs, next);
        });
        add_results(weights.ffn_post_norm);
    }

    // Rows choose their experts, each of which multiplies all rows that have chosen it; then every
    // row adds up what its experts have given.
    void run_experts(int layer) {
        const CpuLayer& weights = model_.layer(layer);
        ExpertRows& experts = pass_.experts_;
        const ExpertSpec& spec = *config_.layer(layer).experts;
        const int n_used = n_experts_used(spec, request_.plan->level(layer, Module::mlp).n_experts);
        route(weights, spec, n_used);
        const ExpertMlp& mlp = weights.experts;
        const ExpertGroups& groups = experts.groups();
        const int n_slots = n_rows_ * n_used;
        const ExpertTiles gates(groups, n_slots, mlp.gate, member_.n_threads());
        share_long(gates.size(), [&](int item) {
            mlp.run_gates(groups, gates[item], pass_.inputs_.data(), scratch_.experts,
                          experts.hidden());
        });
        const ExpertTiles downs(groups, n_slots, mlp.down, member_.n_threads());
        ahead_.expect_module(2 * layer + 2, n_rows_);
        share_long(downs.size(), [&](int item) {
            mlp.run_down(groups, downs[item], experts.hidden(), experts.results());
        });
        if (weights.has_dense_mlp()) {
            share_gates(weights);
            share_down(weights, [&](const Tile& tile, const std::byte* inputs, Next next) {
                keep_product(weights.down, tile, inputs, next);
            });
        }
        add_experts(weights.has_dense_mlp(), weights.ffn_post_norm);
        add_results(weights.ffn_post_norm);
    }

    // The experts of every row, and the rows in the form that experts take.
    void route(const CpuLayer& weights, const ExpertSpec& spec, int n_used) {
        ExpertRows& experts = pass_.experts_;
        const PackedMatrix& router = *weights.router.matrix;
        const PackedMatrix& gate = weights.experts.gate.weight->matrix;
        share_product(router, tiles_of(router), normed(weights.ffn_norm, router),
                      [&](const Tile& tile, const std::byte* inputs, Next next) {
                          multiply(weights.router, tile.first_unit, tile.n_units, inputs,
                                   tile.n_rows,
                                   experts.logits(tile.first_row, spec.n_experts) +
                                       tile.first_unit * kGroupRows,
                                   spec.n_experts, next);
                      });
        const auto prepare = normed(weights.ffn_norm, gate);
        member_.share(n_rows_, [&](int row) {
            prepare(row, pass_.inputs_.data() + static_cast<std::size_t>(row) * row_bytes(gate));
            experts.choose(spec, row, n_used);
        });
        member_.share(1, [&](int /*item*/) { experts.group(spec, n_rows_, n_used); });
    }

    // Adds what the experts of each row have given to the stream, with the product that was kept
    // if there is one; or leaves the sum for add_results() if a norm follows.
    void add_experts(bool has_kept, const float* post_norm) {
        constexpr int kPiece = 512;
        const int n_pieces = steps_for(config_.n_embd, kPiece);
        const ExpertRows& experts = pass_.experts_;
        member_.share(n_rows_ * n_pieces, [&](int item) {
            const int row = item / n_pieces;
            const int first = item % n_pieces * kPiece;
            const int n = std::min(kPiece, config_.n_embd - first);
            float sum[kPiece];
            sum_experts(experts.groups(), experts.results(), config_.n_embd, row, first, n, sum);
            if (has_kept) {
                add_row(result_row(row) + first, n, sum);
            }
            if (post_norm != nullptr) {
                std::copy_n(sum, n, result_row(row) + first);
                return;
            }
            scale_row(config_.residual_scale, n, sum);
            add_row(sum, n, stream_row(row) + first);
        });
    }

    void share_gates(const CpuLayer& weights) {
        share_product(
            *weights.gate.matrix,
            {weights.gate.matrix->n_groups(), n_rows_, member_.n_threads(), Tiles::kMaxGateUnits},
            normed(weights.ffn_norm, *weights.gate.matrix),
            [&](const Tile& tile, const std::byte* inputs, Next next) {
                if (next.empty()) {
                    next = first_weights(*weights.gate.matrix, tile.first_unit + tile.n_units);
                }
                run_gates(weights, tile, inputs, next);
            });
    }

    // Calls work(tile, inputs, next) for every tile of `down`.
    template <typename Work>
    void share_down(const CpuLayer& weights, Work work) {
        const PackedMatrix& down = *weights.down.matrix;
        share_tiles(down, tiles_of(down), pass_.hidden_.data(), work);
    }

    // The activated gate times up, in the form that `down` takes.
    void run_gates(const CpuLayer& weights,
                   const Tile& tile,
                   const std::byte* inputs,
                   Next next) const {
        const PackedMatrix& down = *weights.down.matrix;
        const int width = tile.n_units * kGroupRows;
        float* gates = scratch_.tile.data();
        float* ups = gates + static_cast<std::ptrdiff_t>(width) * tile.n_rows;
        multiply(weights.gate, tile.first_unit, tile.n_units, inputs, tile.n_rows, gates, width,
                 first_weights(*weights.up.matrix, tile.first_unit));
        multiply(weights.up, tile.first_unit, tile.n_units, inputs, tile.n_rows, ups, width, next);
        gate_rows({.activation = config_.activation,
                   .gates = gates,
                   .ups = ups,
                   .width = width,
                   .n_rows = tile.n_rows,
                   .down = down,
                   .first_group = tile.first_unit,
                   .out = pass_.hidden_.data() +
                          static_cast<std::size_t>(tile.first_row) * row_bytes(down)});
    }

    void run_head() {
        const CpuMatrix& head = request_.head;
        const int n_out = head.matrix->n_out;
        // The next pass usually begins as this one.
        ahead_.expect_module(2 * request_.entry_layer, n_rows_);
        share_product(*head.matrix, tiles_of(*head.matrix),
                      normed(model_.output_norm, *head.matrix),
                      [&](const Tile& tile, const std::byte* inputs, Next next) {
                          multiply(head, tile.first_unit, tile.n_units, inputs, tile.n_rows,
                                   pass_.logits_.data() +
                                       static_cast<std::ptrdiff_t>(tile.first_row) * n_out +
                                       static_cast<std::ptrdiff_t>(tile.first_unit) * kGroupRows,
                                   n_out, next);
                          finish_logits(tile, n_out);
                      });
    }

    // Scales and caps, where the model does, and notes the best.
    void finish_logits(const Tile& tile, int n_out) const {
        const int first = tile.first_unit * kGroupRows;
        const int n = std::min(tile.n_units * kGroupRows, n_out - first);
        for (int row = tile.first_row; row < tile.first_row + tile.n_rows; ++row) {
            float* logits = pass_.logits_.data() + static_cast<std::ptrdiff_t>(row) * n_out + first;
            scale_row(config_.logit_scale, n, logits);
            cap_row(config_.final_soft_cap, n, logits);
            if (request_.ranks) {
                pass_.best_.note(static_cast<std::size_t>(row), static_cast<std::size_t>(first),
                                 {logits, static_cast<std::size_t>(n)});
            }
        }
    }

    CpuPass& pass_;
    const CpuModel& model_;
    const ModelConfig& config_;
    const CpuRequest& request_;
    TeamMember& member_;
    Scratch& scratch_;
    WeightsAhead ahead_;
    int n_rows_;  // in the stream
    const int n_whole_modules_;
    const int n_modules_;
    std::size_t n_captured_ = 0;
};

bool CpuPass::run(ThreadTeam& team, const CpuRequest& request) {
    KNAP_ASSERT(request.n_rows > 0 && request.n_rows <= max_rows_, "a pass has room for its rows");
    const auto n_values = n_embd() * static_cast<std::size_t>(request.n_rows);
    if (captures_.size() < request.captures.size()) {
        captures_.resize(request.captures.size());
    }
    capture_views_.clear();
    for (std::size_t i = 0; i < request.captures.size(); ++i) {
        captures_[i].resize(std::max(captures_[i].size(), n_values));
        capture_views_.push_back(std::span(captures_[i]).first(n_values));
    }
    n_logits_ = 0;
    if (!request.logit_rows.empty()) {
        const auto n_out = static_cast<std::size_t>(request.head.matrix->n_out);
        n_logits_ = request.logit_rows.size() * n_out;
        const auto n_usual = static_cast<std::size_t>(std::min(kUsualLogitRows, max_rows_)) * n_out;
        logits_.resize(std::max({logits_.size(), n_logits_, n_usual}));
        if (request.ranks) {
            const Tiles tiles(request.head.matrix->n_groups(),
                              static_cast<int>(request.logit_rows.size()), team.n_threads());
            best_.begin(request.logit_rows.size(), n_out,
                        static_cast<std::size_t>(tiles.n_units()) * kGroupRows);
        }
    }
    bool is_complete = true;
    team.run([&](TeamMember& member) {
        Walk(*this, request, member).run();
        if (member.index() == 0) {
            is_complete = !member.is_stopped();
        }
    });
    return is_complete;
}

}  // namespace knap
