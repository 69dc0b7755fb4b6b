#pragma once
// What a controller asks a node about the files of its copies, and about commands that people run
// beside a job. Answers are pages that fit in a message; nothing here changes a dataset.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/describe.hpp"
#include "core/dataset.hpp"
#include "core/identity.hpp"
#include "core/names.hpp"

namespace zed {

/// Bytes of a file in one FilePiece, before base64: the encoded message stays below message_limit.
inline constexpr std::int64_t file_piece_limit = 128 * 1024;

// ---- questions ----------------------------------------------------------------------------------

/// What lies below `path` (a folder, or one file) of a copy. Links are listed, never followed.
struct ListFiles {
  static constexpr std::string_view tag = "list-files";
  DatasetName dataset;
  std::string snapshot;  ///< "epoch-15"; empty: the live files
  std::string path;      ///< relative; empty: all of it
  Bytes digest_up_to;    ///< files of this size or less are read for their SHA-256; 0: none
  std::string after;     ///< only paths that sort after this one: the page before ended there
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("snapshot", self.snapshot);
    visit("path", self.path);
    visit("digest_up_to", self.digest_up_to);
    visit("after", self.after);
  }
  friend bool operator==(const ListFiles&, const ListFiles&) = default;
};

/// Part of one file.
struct ReadFile {
  static constexpr std::string_view tag = "read-file";
  DatasetName dataset;
  std::string snapshot;  ///< empty: the live files
  std::string path;
  std::int64_t offset = 0;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("snapshot", self.snapshot);
    visit("path", self.path);
    visit("offset", self.offset);
  }
  friend bool operator==(const ReadFile&, const ReadFile&) = default;
};

/// The metrics of a copy (docs/job-protocol.md), thinned out to what a screen can show.
struct ReadMetrics {
  static constexpr std::string_view tag = "read-metrics";
  DatasetName dataset;
  std::string snapshot;             ///< empty: the live files
  std::vector<std::string> names;   ///< only these; empty: all
  std::int64_t most_points = 1000;  ///< of one series, 2 to 10,000; peaks and ends are kept
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
    visit("snapshot", self.snapshot);
    visit("names", self.names);
    visit("most_points", self.most_points);
  }
  friend bool operator==(const ReadMetrics&, const ReadMetrics&) = default;
};

/// Starts a command beside a running job: in its folder, with its environment, as its user. It
/// ends with the agent, or when nobody has tended it for a minute.
struct StartCommand {
  static constexpr std::string_view tag = "start-command";
  std::string command;  ///< its name from now on: 32 hexadecimal digits
  JobId job;
  Generation generation;
  std::vector<std::string> argv;
  bool terminal = false;  ///< with a pseudo-terminal of that size, else with pipes
  std::int64_t rows = 24;
  std::int64_t columns = 80;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("command", self.command);
    visit("job", self.job);
    visit("generation", self.generation);
    visit("argv", self.argv);
    visit("terminal", self.terminal);
    visit("rows", self.rows);
    visit("columns", self.columns);
  }
  friend bool operator==(const StartCommand&, const StartCommand&) = default;
};

/// Gives a command input, takes what it wrote from `offset` on (waiting a moment for it), or ends
/// it. What was asked for with a higher offset is forgotten: a page may be asked for twice.
struct TendCommand {
  static constexpr std::string_view tag = "tend-command";
  std::string command;
  std::int64_t offset = 0;
  std::int64_t input_offset = 0;  ///< of `input` in all input: what came twice is taken once
  std::string input;              ///< base64, at most 64 KiB of bytes
  bool input_ends = false;
  bool kill = false;
  Millis patience{250};  ///< how long output is waited for, at most a quarter of a second
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("command", self.command);
    visit("offset", self.offset);
    visit("input_offset", self.input_offset);
    visit("input", self.input);
    visit("input_ends", self.input_ends);
    visit("kill", self.kill);
    visit("patience", self.patience);
  }
  friend bool operator==(const TendCommand&, const TendCommand&) = default;
};

/// What the files of a dataset tell of the model that they are; nothing is copied or changed.
struct ExamineModel {
  static constexpr std::string_view tag = "examine-model";
  DatasetName dataset;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("dataset", self.dataset);
  }
  friend bool operator==(const ExamineModel&, const ExamineModel&) = default;
};

using NodeQuestion =
    std::variant<ListFiles, ReadFile, ReadMetrics, StartCommand, TendCommand, ExamineModel>;

/// From the controller; answered by one NodeAnswer.
struct AskNode {
  static constexpr std::string_view tag = "ask-node";
  std::uint64_t request = 0;
  NodeQuestion question;
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("request", self.request);
    visit("question", self.question);
  }
  friend bool operator==(const AskNode&, const AskNode&) = default;
};

// ---- answers ------------------------------------------------------------------------------------

enum class FileKind { file, folder, link, other };
constexpr auto enum_names(FileKind) {
  return std::array<std::string_view, 4>{"file", "folder", "link", "other"};
}

struct FileEntry {
  std::string path;  ///< below the asked one's dataset; valid UTF-8, percent-encoded if it was not
  FileKind kind = FileKind::file;
  Bytes size;
  std::int64_t mode = 0;  ///< permission bits
  WallTime modified;
  std::string digest;  ///< SHA-256 in hexadecimal, if asked for; empty: not read
  std::string target;  ///< of a link
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("kind", self.kind);
    visit("size", self.size);
    visit("mode", self.mode);
    visit("modified", self.modified);
    visit("digest", self.digest);
    visit("target", self.target);
  }
  friend bool operator==(const FileEntry&, const FileEntry&) = default;
};

struct FileList {
  static constexpr std::string_view tag = "file-list";
  std::vector<FileEntry> entries;  ///< sorted by path
  bool more = false;               ///< ask again, after the last of these
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("entries", self.entries);
    visit("more", self.more);
  }
  friend bool operator==(const FileList&, const FileList&) = default;
};

struct FilePiece {
  static constexpr std::string_view tag = "file-piece";
  std::int64_t offset = 0;
  std::int64_t size = 0;  ///< of the whole file
  std::string data;       ///< base64, at most file_piece_limit bytes
  std::string digest;     ///< SHA-256 of these bytes
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("offset", self.offset);
    visit("size", self.size);
    visit("data", self.data);
    visit("digest", self.digest);
  }
  friend bool operator==(const FilePiece&, const FilePiece&) = default;
};

/// One metric over the steps at which it was logged (or, without any, over the order of its lines).
struct MetricSeries {
  std::string name;
  std::vector<double> steps;
  std::vector<double> values;  ///< as many as steps, all finite
  std::int64_t count = 0;      ///< values before thinning out, those that are not finite included
  std::int64_t not_finite = 0;
  std::optional<double> first_not_finite;  ///< the step of the first NaN or infinity
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("steps", self.steps);
    visit("values", self.values);
    visit("count", self.count);
    visit("not_finite", self.not_finite);
    visit("first_not_finite", self.first_not_finite);
  }
  friend bool operator==(const MetricSeries&, const MetricSeries&) = default;
};

struct MetricsPage {
  static constexpr std::string_view tag = "metrics-page";
  std::vector<MetricSeries> series;      ///< sorted by name
  std::vector<std::string> other_names;  ///< logged, and left out for want of room
  bool complete = true;  ///< false: only the newest part was read, there is too much
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("series", self.series);
    visit("other_names", self.other_names);
    visit("complete", self.complete);
  }
  friend bool operator==(const MetricsPage&, const MetricsPage&) = default;
};

struct CommandState {
  static constexpr std::string_view tag = "command-state";
  std::int64_t offset = 0;  ///< of `data` in all that it wrote
  std::string data;         ///< base64; standard output and error as they came
  std::int64_t input_taken = 0;
  bool over = false;  ///< it ended, and `data` reaches its last byte
  std::int64_t status = 0;
  std::string words;  ///< "exit status 2", "killed by signal 9 (killed)"
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("offset", self.offset);
    visit("data", self.data);
    visit("input_taken", self.input_taken);
    visit("over", self.over);
    visit("status", self.status);
    visit("words", self.words);
  }
  friend bool operator==(const CommandState&, const CommandState&) = default;
};

/// The answer to ExamineModel.
struct ModelFacts {
  static constexpr std::string_view tag = "model-facts";
  Properties properties;  ///< size_gb, quantized, format …; empty: no model file is there
  std::string unread;     ///< why its headers could not be read; empty: they were
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("properties", self.properties);
    visit("unread", self.unread);
  }
  friend bool operator==(const ModelFacts&, const ModelFacts&) = default;
};

using NodeReply = std::variant<FileList, FilePiece, MetricsPage, CommandState, ModelFacts>;

/// The answer to AskNode.
struct NodeAnswer {
  static constexpr std::string_view tag = "node-answer";
  std::uint64_t request = 0;
  std::optional<Error> error;
  std::optional<NodeReply> reply;  ///< unless there is an error
  template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
    visit("request", self.request);
    visit("error", self.error);
    visit("reply", self.reply);
  }
  friend bool operator==(const NodeAnswer&, const NodeAnswer&) = default;
};

}  // namespace zed
