// Remembers values that are dear to make, and forgets the one that was not used for longest.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace knap {

// Safe to use from several threads. Values are copied out.
template <typename Key, typename Value>
class RecentValues {
  public:
    // `n_max`: at least 1.
    explicit RecentValues(std::size_t n_max) : n_max_(n_max) {}

    // `make` takes the key. It is called without a lock, so two threads may make the same value.
    template <typename Make>
    Value get_or_make(const Key& key, const Make& make) {
        {
            const std::lock_guard lock(mutex_);
            if (const Value* known = find(key)) {
                return *known;
            }
        }
        Value made = make(key);
        const std::lock_guard lock(mutex_);
        if (find(key) == nullptr) {
            insert(key, made);
        }
        return made;
    }

  private:
    using Entries = std::list<std::pair<Key, Value>>;  // the last used is in front

    const Value* find(const Key& key) {
        const auto found = places_.find(key);
        if (found == places_.end()) {
            return nullptr;
        }
        entries_.splice(entries_.begin(), entries_, found->second);
        return &found->second->second;
    }

    void insert(const Key& key, const Value& value) {
        if (entries_.size() == n_max_) {
            places_.erase(entries_.back().first);
            entries_.pop_back();
        }
        entries_.emplace_front(key, value);
        places_[key] = entries_.begin();
    }

    std::size_t n_max_;
    std::mutex mutex_;
    Entries entries_;
    std::unordered_map<Key, typename Entries::iterator> places_;
};

}  // namespace knap
