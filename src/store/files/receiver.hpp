#pragma once
// The receiving half of a `files` stream: judges every byte before it is kept. What it keeps goes
// to a Staging area as numbered pieces, so no name from the stream reaches a file system before the
// whole list of changes has been checked against its hash.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/files/wire.hpp"

namespace zed::store {

/// Where an incomplete receive lives; survives a crash.
class Staging {
public:
  virtual ~Staging() = default;
  struct Found {
    ByteVector plan;         ///< what keep_plan stored
    std::uint64_t kept = 0;  ///< what keep_offset stored last; 0 before
  };
  /// What an earlier receive left; none if it had no plan yet.
  virtual Result<std::optional<Found>> find() = 0;
  /// Drops everything that an earlier receive left.
  virtual Status clear() = 0;
  /// Durable on return.
  virtual Status keep_plan(std::span<const std::byte> plan) = 0;
  /// Never called for an empty file: those are made without.
  virtual Status append(std::size_t file, std::uint64_t offset,
                        std::span<const std::byte> bytes) = 0;
  /// Reads back what was appended. Errors: `corrupt` if less is there.
  virtual Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> buffer) = 0;
  /// Everything appended so far is durable on return, and then so is this number: the body offset
  /// from which the stream can go on.
  virtual Status keep_offset(std::uint64_t body_offset) = 0;
  /// The same, but it may still be at it when it returns: then a later call reports its error. More
  /// may be appended meanwhile.
  virtual Status keep_offset_soon(std::uint64_t body_offset) { return keep_offset(body_offset); }
};

/// Where the content of a new or changed file is to be found.
struct ContentPlace {
  enum class From { staged, base, earlier };
  From from = From::staged;
  std::size_t staged_file = 0;  ///< From::staged: its number
  std::string path;             ///< From::base: in the base; From::earlier: in this delta
};

/// A verified snapshot that has arrived whole.
struct Arrival {
  Manifest manifest;
  Delta delta;
  std::vector<std::optional<ContentPlace>> places;  ///< one an entry of delta.put; none: no file
};

class Receiver {
public:
  struct Expected {
    CheckpointId snapshot;
    std::optional<CheckpointId> base;
    Manifest base_manifest;
  };
  /// `staging` must outlive it.
  Receiver(Expected expected, Staging& staging);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// Errors: `corrupt` (framing, hashes, a hostile list), `stale` (another snapshot or base than
  /// expected, a resume that does not fit), `unsupported`, and the staging area's. After an error
  /// every further write fails with it.
  Status write(std::span<const std::byte> bytes);
  /// Errors: `corrupt` if the stream was cut.
  Result<Arrival> finish();
  /// Makes what has arrived resumable; for the end of a connection.
  Status keep();

  /// The token for what `staging` holds, or "" if nothing there can be gone on with.
  static Result<std::string> token(Staging& staging);

private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zed::store
