#include "support/device_agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "sampling/draft_sampler.h"
#include "support/rounding_error.h"

namespace knap::test {
namespace {

using Rows = std::vector<std::vector<float>>;

// Both sides round the factors of a product to the type that goes with the weights, at different
// places. A GPU also keeps the sum of a block of factors in half precision and, for weights with an
// offset (Q4_0, Q4_1), multiplies it by the offset: measured up to 2.1 of these errors on an H200.
constexpr double kStoredFactor = 3;
// A device may also multiply and sum in half precision, as flash attention on a CPU does. There the
// error is at most 5.8 times that of half-precision factors (Intel Xeon, family 6, model 207).
constexpr double kHalfFactor = 8;
// Where layers have experts, rounding may choose another one: in the rows that this tolerance
// leaves out, or in rows that others attend to. Routers are steep and multiply the errors of what
// they read. The factor is that of the oracle tests.
constexpr double kExpertsFactor = 3;
constexpr std::size_t kRowsPerFreeOne = 20;
// Choices compare floats, and probabilities are a softmax in floats: a few units in the last place.
constexpr double kChoiceBound = 64 * std::numeric_limits<float>::epsilon();

ModulePlan windowed(int n_layers) {
    ModulePlan plan(n_layers);
    for (int layer = 0; layer < n_layers; ++layer) {
        plan.set(layer, Module::attention, Level::windowed(16, layer % 2 == 0 ? 32 : 200));
    }
    return plan;
}

ModulePlan skipping(int n_layers) {
    ModulePlan plan(n_layers);
    plan.set(1, Module::attention, Level::skip);
    plan.set(n_layers - 1, Module::mlp, Level::skip);
    return plan;
}

// A device with a model and a half-full cache.
struct Side {
    Side(const std::filesystem::path& path,
         ggml_backend_dev_t device,
         const ForwardOptions& options,
         Kernels kernels = Kernels::ggml)
        : model(path, Repack::off, 1, kernels, device),
          rig(model, options),
          context(options.capacity / 2) {
        const auto text = random_tokens(context, model.config.n_vocab, 1);
        std::vector<int> passes(static_cast<std::size_t>(context / 256), 256);
        prompt = rig.feed(text, passes);
    }

    LoadedModel model;
    ForwardRig rig;
    int context;
    Rows prompt;
};

bool has_experts(const Side& side) {
    return side.model.config.n_experts_used() > 0;
}

// The error of a pass. If rows may be left out, those farthest from the expected ones are: of
// several rows one in twenty, but at least one.
double error_of(const Rows& rows, const Rows& expected, bool leaves_rows_out) {
    if (!leaves_rows_out || rows.size() < 2) {
        return difference(rows, expected).relative;
    }
    std::vector<std::pair<double, std::size_t>> by_error;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        by_error.emplace_back(difference({rows[row]}, {expected[row]}).relative, row);
    }
    std::ranges::sort(by_error);
    by_error.resize(rows.size() - std::max<std::size_t>(1, rows.size() / kRowsPerFreeOne));
    Rows near;
    Rows near_expected;
    for (const auto& [error, row] : by_error) {
        near.push_back(rows[row]);
        near_expected.push_back(expected[row]);
    }
    return difference(near, near_expected).relative;
}

Rows run(Side& side, ForwardRequest request) {
    request.first_row = std::max(request.first_row, side.context);
    return side.rig.run(request);
}

// The stream after some modules, and the logits when continuing from there.
Rows resumed(Side& side, std::span<const Token> tokens) {
    const int entry = 2;
    const std::vector<int> captures{2 * entry};
    const std::vector<int> last{static_cast<int>(tokens.size()) - 1};
    const ForwardResult half = side.rig.forward.run(
        {.tokens = tokens, .first_row = side.context, .exit_layer = entry, .captures = captures});
    const std::vector<float> stream(half.captures[0].begin(), half.captures[0].end());
    Rows rows = side.rig.run({.hidden = stream, .first_row = side.context, .entry_layer = entry});
    rows.push_back(stream);
    return rows;
}

// A row that was computed elsewhere, copied into place, and read by the next one.
Rows copied(Side& side, std::span<const Token> tokens) {
    const std::vector<int> parents{-1, -1, 1};
    side.rig.run({.tokens = tokens.first(3),
                  .first_row = side.context,
                  .layout = {.kind = AttentionLayout::Kind::tree, .parents = parents}});
    side.rig.cache.copy_row(side.context + 1, side.context);
    return side.rig.run({.tokens = tokens.subspan(3, 1),
                         .first_row = side.context + 1,
                         .layout = {.context = side.context}});
}

// Rows that were read into host memory and written back.
Rows restored(Side& side, std::span<const Token> tokens) {
    Sequence& cache = side.rig.cache;
    std::vector<std::byte> bytes(cache.saved_row_bytes() * static_cast<std::size_t>(side.context));
    std::vector<std::byte> zeros(bytes.size());
    for (int layer = 0; layer < side.model.config.n_layers; ++layer) {
        cache.read_rows(layer, side.context, bytes.data());
        cache.write_rows(layer, side.context, zeros.data());
        cache.write_rows(layer, side.context, bytes.data());
    }
    return run(side, {.tokens = tokens});
}

// A windowed pass, of whose windows a device keeps a part in scratch rows, repeated after a write.
template <typename Write>
Rows windowed_after(Side& side, const ForwardRequest& windows, Write write) {
    run(side, windows);
    write(side);
    return run(side, windows);
}

// Copies the rows of the first layer to the second.
void move_rows(Side& side) {
    Sequence& cache = side.rig.cache;
    std::vector<std::byte> bytes(cache.saved_row_bytes() * static_cast<std::size_t>(side.context));
    cache.read_rows(0, side.context, bytes.data());
    cache.write_rows(1, side.context, bytes.data());
}

// The largest difference between a chain's choices and probabilities and those of single-row
// passes.
double chain_error(Side& side, Token first, const ModulePlan& plan) {
    const ChainResult chain =
        side.rig.forward.run_chain({.token = first,
                                    .plan = &plan,
                                    .first_row = side.context,
                                    .n_steps = side.rig.forward.max_chain(side.context)});
    const std::vector<Token> chosen(chain.tokens.begin(), chain.tokens.end());
    const std::vector<float> probabilities(chain.probabilities.begin(), chain.probabilities.end());
    double error = 0;
    Token token = first;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        const std::vector<Token> row{token};
        const std::vector<float> logits =
            side.rig.run({.tokens = row,
                          .plan = &plan,
                          .first_row = side.context + static_cast<int>(i),
                          .layout = {.context = side.context}})[0];
        token = chosen[i];
        const float largest = *std::ranges::max_element(logits);
        const float logit = logits[static_cast<std::size_t>(token)];
        error = std::max({error, double{largest} - logit,
                          std::abs(double{probabilities[i]} - confidence(logits, token))});
    }
    return error;
}

// The most by which the logit of a pass's choice is below the largest of its row.
double choice_error(Side& side, std::span<const Token> tokens) {
    const Rows logits = run(side, {.tokens = tokens});
    std::vector<int> rows(tokens.size());
    std::iota(rows.begin(), rows.end(), 0);
    const ForwardResult chosen = side.rig.forward.run(
        {.tokens = tokens, .first_row = side.context, .logit_rows = rows, .chooses = true});
    double error = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const float largest = *std::ranges::max_element(logits[i]);
        const Token token = chosen.choices[i];
        error = std::max(error, double{largest} - logits[i][static_cast<std::size_t>(token)]);
    }
    return error;
}

}  // namespace

std::vector<PassAgreement> compare_with_cpu(const std::filesystem::path& path,
                                            ggml_backend_dev_t device,
                                            const ForwardOptions& options,
                                            AttentionPath cpu_path,
                                            Kernels kernels) {
    Side ours(path, device, options, kernels);
    Side reference(path, nullptr, {.capacity = options.capacity, .path = cpu_path});
    const int n_layers = reference.model.config.n_layers;
    const auto tokens = random_tokens(8, reference.model.config.n_vocab, 2);
    const std::span<const Token> draft = tokens;
    const auto many = random_tokens(200, reference.model.config.n_vocab, 3);
    const std::vector<int> parents{-1, 0, 0, 1, 2, 2, 4, 3};
    const ModulePlan windows = windowed(n_layers);
    const ModulePlan skips = skipping(n_layers);
    using Kind = AttentionLayout::Kind;

    const bool routes = has_experts(reference);
    const double bound =
        (routes ? kExpertsFactor : 1) *
        (kStoredFactor * rounding_error(reference.model, many, Factors::as_stored).relative +
         kHalfFactor * rounding_error(reference.model, many, Factors::f16).relative);
    std::vector<PassAgreement> results{
        {"prompt", error_of(ours.prompt, reference.prompt, routes), bound}};
    const auto compare = [&](const char* name, auto body) {
        results.push_back({name, error_of(body(ours), body(reference), routes), bound});
    };
    const auto compare_pass = [&](const char* name, const ForwardRequest& request) {
        compare(name, [&](Side& side) { return run(side, request); });
    };
    compare_pass("one row", {.tokens = draft.first(1)});
    compare_pass("eight rows", {.tokens = draft});
    compare_pass("skipped modules", {.tokens = draft, .plan = &skips});
    compare_pass("early exit", {.tokens = draft, .exit_layer = 2});
    compare_pass("windows, one row", {.tokens = draft.first(1), .plan = &windows});
    compare_pass("windows", {.tokens = draft, .plan = &windows});
    compare_pass("tree", {.tokens = draft, .layout = {.kind = Kind::tree, .parents = parents}});
    compare_pass(
        "tree, windows",
        {.tokens = draft, .plan = &windows, .layout = {.kind = Kind::tree, .parents = parents}});
    compare_pass("branches",
                 {.tokens = draft, .layout = {.kind = Kind::branches, .branch_rows = 2}});
    compare("replay", [&](Side& side) {
        return run(
            side, {.tokens = draft, .layout = {.kind = Kind::replay, .context = side.context - 8}});
    });
    compare("resumed", [&](Side& side) { return resumed(side, draft); });
    compare("copied row", [&](Side& side) { return copied(side, draft); });
    compare("restored rows", [&](Side& side) { return restored(side, draft); });
    const ForwardRequest narrow{.tokens = draft, .plan = &windows};
    const auto compare_windows_after = [&](const char* name, auto write) {
        compare(name, [&](Side& side) { return windowed_after(side, narrow, write); });
    };
    compare_windows_after("windows, after a longer pass",
                          [&](Side& side) { run(side, {.tokens = many}); });
    compare_windows_after("windows, after other first rows",
                          [&](Side& side) { side.rig.run({.tokens = many, .first_row = 0}); });
    compare_windows_after("windows, after rows came from elsewhere", move_rows);
    results.push_back({"choices", choice_error(ours, draft), kChoiceBound});
    if (ours.rig.forward.max_chain(ours.context) > 0) {
        results.push_back(
            {"chain", chain_error(ours, draft[0], ModulePlan(n_layers)), kChoiceBound});
        results.push_back({"chain, windows", chain_error(ours, draft[0], windows), kChoiceBound});
        results.push_back(
            {"chain, skipped modules", chain_error(ours, draft[0], skips), kChoiceBound});
    }
    return results;
}

std::string find_changed_bits(const std::filesystem::path& path,
                              ggml_backend_dev_t device,
                              const ForwardOptions& options) {
    LoadedModel model(path, Repack::off, 1, Kernels::ggml, device);
    ForwardRig rig(model, options);
    const auto text = random_tokens(options.capacity, model.config.n_vocab, 5);
    const std::span<const Token> tokens = text;
    const std::vector<int> passes(static_cast<std::size_t>(options.capacity / 256 - 1), 256);
    rig.feed(tokens.first(passes.size() * 256), passes);
    for (const int first_row : {0, 60, 254, options.capacity / 2 - 2, options.capacity - 300}) {
        const auto round = tokens.subspan(static_cast<std::size_t>(first_row),
                                          static_cast<std::size_t>(options.exact_rows));
        Rows alone;
        for (std::size_t i = 0; i < round.size(); ++i) {
            alone.push_back(rig.run(
                {.tokens = round.subspan(i, 1), .first_row = first_row + static_cast<int>(i)})[0]);
        }
        for (std::size_t n_rows = 2; n_rows <= round.size(); ++n_rows) {
            const Rows rows = rig.run({.tokens = round.first(n_rows), .first_row = first_row});
            const auto same = std::ranges::mismatch(rows, alone).in1;
            if (same != rows.end()) {
                return concat("row ", same - rows.begin(), " of ", n_rows, " at ", first_row);
            }
        }
    }
    return "";
}

}  // namespace knap::test
