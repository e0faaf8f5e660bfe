// Sessions as PageSupply sees them, on a few pages of a store of numbers.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/scheduling/page_supply.h"
#include "support/held_scheduler.h"
#include "support/number_store.h"

namespace knap::test {

// Tells another thread that a request waits.
class Waiting {
  public:
    std::function<bool()> is_cancelled() {
        return [this] {
            was_asked_ = true;
            return false;
        };
    }
    void wait() const {
        wait_until([this] { return was_asked_.load(); });
    }

  private:
    std::atomic<bool> was_asked_ = false;
};

class SupplyRig : public ::testing::Test {
  protected:
    using Grant = PageSupply::Grant;
    static constexpr int kPage = 256;  // rows
    static constexpr int kPages = 4;

    // A session as the supply sees it.
    struct Client {
        explicit Client(SupplyRig& test)
            : supply(test.supply),
              sequence(*test.memory, kPages * kPage),
              holder(supply, sequence) {}

        void begin() { request.emplace(holder); }
        void end() { request.reset(); }
        Grant reserve(int n_pages, const std::function<bool()>& is_cancelled = {}) {
            return supply.reserve(holder, n_pages * kPage, n_pages * kPage, is_cancelled);
        }
        // Asks only once, so that it never waits for long.
        Grant try_reserve(int n_pages) {
            return reserve(n_pages, [] { return true; });
        }
        void compute(int n_pages) {
            ASSERT_EQ(reserve(n_pages), Grant::ready);
            sequence.commit(n_pages * kPage);
        }
        // A request from beginning to end.
        void serve(int n_pages) {
            begin();
            compute(n_pages);
            end();
        }
        void publish(const std::vector<Token>& tokens) { supply.publish(holder, tokens, true); }
        int n_pages() const { return static_cast<int>(sequence.pages().size()); }

        PageSupply& supply;
        Sequence sequence;
        PageSupply::Holder holder;
        std::optional<PageSupply::Request> request;
    };

    // Computes a text that stays in the prefix cache alone.
    void list(const std::vector<Token>& tokens) {
        Client client(*this);
        client.begin();
        client.compute(static_cast<int>(tokens.size()) / kPage);
        client.publish(tokens);
    }
    static std::vector<Token> text(int n_pages, Token first = 0) {
        std::vector<Token> tokens(static_cast<std::size_t>(n_pages * kPage));
        std::iota(tokens.begin(), tokens.end(), first);
        return tokens;
    }
    static std::unique_ptr<KvMemory> new_memory() {
        const PageShape shape{.page_rows = kPage, .n_pages = kPages};
        std::vector<std::unique_ptr<KvStore>> stores;
        stores.push_back(std::make_unique<NumberStore>(shape));
        return std::make_unique<KvMemory>(std::move(stores), shape);
    }
    int n_free() {
        const std::lock_guard lock(memory->mutex());
        return memory->pool().n_free();
    }

    std::unique_ptr<KvMemory> memory = new_memory();
    PageSupply supply{*memory};
};

}  // namespace knap::test
