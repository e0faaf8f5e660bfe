#include "runtime/scheduling/page_supply.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace knap {
namespace {

// Shorter beginnings are not worth waiting for.
constexpr std::ptrdiff_t kMinShared = 64;
constexpr std::uint64_t kYoungest = std::numeric_limits<std::uint64_t>::max();

}  // namespace

PageSupply::Holder::Holder(PageSupply& supply, Sequence& sequence)
    : supply_(supply), sequence_(sequence) {
    const std::lock_guard lock(supply_.mutex_);
    supply_.holders_.push_back(this);
}

PageSupply::Holder::~Holder() {
    const std::lock_guard lock(supply_.mutex_);
    std::erase(supply_.holders_, this);
    sequence_.release();
    supply_.changed_.notify_all();
}

PageSupply::Request::Request(Holder& holder, Kind kind) : holder_(holder), kind_(kind) {
    const std::lock_guard lock(holder_.supply_.mutex_);
    holder_.age_ = kind == Kind::idle ? kYoungest : ++holder_.supply_.n_events_;
}

PageSupply::Request::~Request() {
    PageSupply& supply = holder_.supply_;
    const std::lock_guard lock(supply.mutex_);
    if (kind_ == Kind::idle && holder_.must_yield_) {
        holder_.sequence_.release();  // before the next piece begins
    }
    holder_.sequence_.return_scratch();
    holder_.age_ = 0;
    if (kind_ == Kind::answer) {
        holder_.end_ = ++supply.n_events_;
    }
    holder_.must_yield_ = false;
    holder_.is_waiting_ = false;
    holder_.prompt_ = {};
    supply.changed_.notify_all();
}

// Polls for cancellation too.
void PageSupply::wait(Lock& lock) {
    constexpr std::chrono::milliseconds kPoll(20);
    changed_.wait_for(lock, kPoll);
}

bool PageSupply::has_older_waiting(const Holder& holder) const {
    return std::ranges::any_of(holders_, [&](const Holder* other) {
        return other->is_waiting_ && other->age_ < holder.age_;
    });
}

bool PageSupply::reclaim(const Holder& holder) {
    Holder* idle = nullptr;
    Holder* youngest = nullptr;
    for (Holder* other : holders_) {
        if (other == &holder || other->sequence_.pages().empty()) {
            continue;
        }
        if (other->age_ == 0) {
            idle = idle == nullptr || other->end_ < idle->end_ ? other : idle;
        } else if (other->age_ > holder.age_) {
            youngest = youngest == nullptr || other->age_ > youngest->age_ ? other : youngest;
        }
    }
    if (idle != nullptr) {
        idle->sequence_.release();
        return true;
    }
    if (youngest == nullptr) {
        return false;
    }
    youngest->must_yield_ = true;
    changed_.notify_all();
    return true;
}

PageSupply::Grant PageSupply::reserve(Holder& holder,
                                      int n_rows,
                                      int n_wished,
                                      const std::function<bool()>& is_cancelled) {
    if (holder.sequence_.is_reserved(n_wished) && !holder.must_yield_) {
        return Grant::ready;
    }
    Lock lock(mutex_);
    bool is_lost = false;
    const auto give_up = [&] {
        is_lost = is_lost || holder.sequence_.committed() > 0;
        holder.must_yield_ = false;
        holder.sequence_.release();
        changed_.notify_all();
    };
    for (;;) {
        if (holder.must_yield_) {
            give_up();
        }
        if (!has_older_waiting(holder) && holder.sequence_.reserve(n_rows)) {
            break;
        }
        if (is_cancelled && is_cancelled()) {
            holder.is_waiting_ = false;
            return Grant::cancelled;
        }
        holder.is_waiting_ = true;
        const bool has_idle_or_younger = reclaim(holder);
        if (has_idle_or_younger && !has_older_waiting(holder) && holder.sequence_.reserve(n_rows)) {
            break;
        }
        if (!has_idle_or_younger && !holder.sequence_.pages().empty() &&
            std::ranges::any_of(holders_, [&](const Holder* other) {
                return other->age_ > 0 && other->age_ < holder.age_;
            })) {
            give_up();  // the youngest: older ones may need the pages
        }
        wait(lock);
    }
    holder.is_waiting_ = false;
    holder.sequence_.reserve_if_free(n_wished);
    return is_lost ? Grant::lost : Grant::ready;
}

bool PageSupply::reserve_if_free(Holder& holder, int n_rows, int n_wished) {
    const Lock lock(mutex_);
    Sequence& sequence = holder.sequence_;
    sequence.reserve_if_free(n_wished);
    // The second for a page whose rows others count on.
    return sequence.n_reserved() >= n_rows && sequence.reserve(n_rows);
}

void PageSupply::set_prompt(Holder& holder, std::span<const Token> prompt) {
    const std::lock_guard lock(mutex_);
    holder.prompt_ = prompt;
    holder.n_read_ = 0;
    changed_.notify_all();
}

bool PageSupply::computes_shared_rows(const Holder& other, const Holder& holder) const {
    if (&other == &holder || other.age_ == 0 || other.age_ > holder.age_ || other.is_waiting_ ||
        other.prompt_.empty()) {
        return false;
    }
    const auto n_common =
        std::ranges::mismatch(other.prompt_, holder.prompt_).in1 - other.prompt_.begin();
    const std::ptrdiff_t n_needed =
        std::min<std::ptrdiff_t>(n_common, static_cast<std::ptrdiff_t>(holder.prompt_.size()) - 1);
    return other.n_read_ < n_needed && n_needed - holder.sequence_.committed() >= kMinShared;
}

bool PageSupply::wait_for_shared_rows(Holder& holder, const std::function<bool()>& is_cancelled) {
    Lock lock(mutex_);
    while (std::ranges::any_of(
        holders_, [&](const Holder* other) { return computes_shared_rows(*other, holder); })) {
        if (is_cancelled && is_cancelled()) {
            return false;
        }
        if (holder.must_yield_) {
            return true;
        }
        wait(lock);
    }
    return true;
}

int PageSupply::adopt(Holder& holder, std::span<const Token> tokens) {
    const std::lock_guard lock(mutex_);
    return holder.sequence_.adopt_prefix(tokens);
}

void PageSupply::publish(Holder& holder, std::span<const Token> tokens, bool with_last) {
    const std::lock_guard lock(mutex_);
    holder.n_read_ = holder.sequence_.publish_prefix(tokens, with_last);
    changed_.notify_all();
}

void PageSupply::release(Holder& holder) {
    const std::lock_guard lock(mutex_);
    holder.sequence_.release();
    changed_.notify_all();
}

}  // namespace knap
