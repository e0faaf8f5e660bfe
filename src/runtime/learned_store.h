// What runs have learned about a model on this machine, kept from run to run in one file
// (docs/methods.md, "Memory"). Several processes may share the file: each adds what is new under a
// lock, so none loses what another has learned, unless that one holds the lock for seconds. A
// process that is killed leaves a whole file, without what it has learned since it saved last. Any
// thread.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "decode/learned/learned.h"
#include "runtime/files/machine_fingerprint.h"

namespace knap {

class LearnedStore {
  public:
    LearnedStore(std::filesystem::path path, MachineFingerprint fingerprint, int n_layers);
    // Saves what is left. Does not throw.
    ~LearnedStore();
    LearnedStore(const LearnedStore&) = delete;
    LearnedStore& operator=(const LearnedStore&) = delete;

    // What the file has and what was added since.
    Learned known() const;
    // Adds what a request has learned and empties `notes`. When there is enough of it, another
    // thread saves it, so no request waits for a file; if another process is saving, the next call
    // does. Does not throw.
    void add(Learned& notes);

  private:
    void start_writer();
    void save(int most_waits);
    Learned write(int most_waits) const;

    const std::filesystem::path path_;
    const MachineFingerprint fingerprint_;
    const int n_layers_;
    mutable std::mutex mutex_;  // of all that follows
    Learned saved_;
    Learned being_saved_;  // changed by the thread that saves only
    Learned unsaved_;
    double n_unsaved_ = 0;     // the weights of what was added to it
    bool has_saved_ = false;   // so this run is counted
    bool is_saving_ = false;   // `writer_` is
    bool has_failed_ = false;  // writing, which is tried once more when the run ends
    std::jthread writer_;
};

// Null if the configuration wants none, or if there is no folder for it.
std::unique_ptr<LearnedStore> open_learned_store(const Engine::Impl& engine);

}  // namespace knap
