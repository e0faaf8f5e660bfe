#include "graph/stream_bank.h"

#include <algorithm>
#include <cstdint>

#include "ggml-alloc.h"
#include "ggml-backend.h"

#include "base/error.h"
#include "device/backend.h"

namespace knap {
namespace {

std::size_t size_of(int n) {
    return static_cast<std::size_t>(n);
}

// Numbers of a pass that come before those of its captures.
std::size_t n_taken(const GraphKey& key) {
    return key.bank.takes ? size_of(key.n_rows) : 0;
}

std::size_t n_of_captures(const GraphKey& key) {
    return key.captures.size() * size_of(key.n_rows);
}

// i32 [n], from number `first` on.
ggml_tensor* view(ggml_context* ctx, ggml_tensor* numbers, int n, std::size_t first) {
    return ggml_view_1d(ctx, numbers, n, first * numbers->nb[0]);
}

}  // namespace

std::size_t BankSize::bytes() const {
    return size_of(n_embd) * n_rows * sizeof(float);
}

std::shared_ptr<GgmlStreamBank> GgmlStreamBank::make(Backend& backend, const BankSize& size) {
    // No make_shared: the constructor is private.
    std::shared_ptr<GgmlStreamBank> bank(new GgmlStreamBank);
    bank->context_.reset(ggml_init({ggml_tensor_overhead(), nullptr, true}));
    bank->rows_ = ggml_set_name(ggml_new_tensor_2d(bank->context_.get(), GGML_TYPE_F32, size.n_embd,
                                                   static_cast<std::int64_t>(size.n_rows)),
                                "bank.rows");
    const WorkerWait wait = backend.waiting();
    bank->buffer_.reset(
        ggml_backend_alloc_ctx_tensors_from_buft(bank->context_.get(), backend.buffer_type()));
    if (bank->buffer_ == nullptr) {
        return nullptr;
    }
    bank->number_context_.reset(ggml_init({ggml_tensor_overhead(), nullptr, true}));
    bank->numbers_ = ggml_set_name(ggml_new_tensor_1d(bank->number_context_.get(), GGML_TYPE_I32,
                                                      static_cast<std::int64_t>(size.max_numbers)),
                                   "bank.numbers");
    bank->number_buffer_.emplace(backend, bank->number_context_.get(), "a bank of streams");
    return bank;
}

std::size_t GgmlStreamBank::bytes() const {
    return ggml_backend_buffer_get_size(buffer_.get()) + number_buffer_->size();
}

void GgmlStreamBank::set(const BankRows& rows) {
    const auto numbers = number_buffer_->host<std::int32_t>(numbers_);
    KNAP_ASSERT(rows.n_numbers() <= numbers.size(), "a pass names no more rows than it may have");
    auto out = numbers.begin();
    for (const std::span<const int> part : {rows.hidden, rows.captured, rows.compared}) {
        out = std::ranges::copy(part, out).out;
    }
    number_buffer_->upload_until(numbers_, rows.n_numbers() * sizeof(std::int32_t));
}

ggml_tensor* GgmlStreamBank::take(ggml_context* ctx, const GraphKey& key) const {
    return ggml_get_rows(ctx, rows_, view(ctx, numbers_, key.n_rows, 0));
}

ggml_tensor* GgmlStreamBank::put(ggml_context* ctx,
                                 const GraphKey& key,
                                 std::size_t capture,
                                 ggml_tensor* stream) const {
    const std::size_t first = n_taken(key) + capture * size_of(key.n_rows);
    return ggml_set_rows(ctx, rows_, stream, view(ctx, numbers_, key.n_rows, first));
}

ggml_tensor* GgmlStreamBank::compare(ggml_context* ctx,
                                     const GraphKey& key,
                                     std::size_t capture,
                                     ggml_tensor* stream) const {
    // A row that is shorter is divided by this, so that zeros stay zeros. Devices square it.
    constexpr float kShortest = 1e-18f;
    const std::size_t first =
        n_taken(key) + (key.bank.puts ? n_of_captures(key) : 0) + capture * size_of(key.n_rows);
    ggml_tensor* others = ggml_get_rows(ctx, rows_, view(ctx, numbers_, key.n_rows, first));
    return ggml_sum_rows(ctx, ggml_mul(ctx, ggml_l2_norm(ctx, stream, kShortest),
                                       ggml_l2_norm(ctx, others, kShortest)));
}

}  // namespace knap
