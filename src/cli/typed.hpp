#pragma once
// What people type as values of options, read. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "core/requirement.hpp"

namespace zed::cli {

/// "vram=48", "gpus=2", "gpu=A100|H100", "labels=fast"; also "vram:48" and several with commas.
/// Errors: `invalid`, naming the clause and what it takes.
Result<Requirement> parse_requirement(const std::vector<std::string>& clauses);

/// "gpu=A100", "node=server", "label=fast", best first. Errors: `invalid`.
Result<Preference> parse_preference(const std::vector<std::string>& wishes);

struct JobAt {
  std::string job;
  std::string checkpoint;  ///< "@epoch-20", or empty
};
/// "finetune@epoch-20". Errors: `invalid` for an empty job or checkpoint.
Result<JobAt> parse_job_at(std::string_view text);

struct FilesAt {
  std::string of;          ///< a job, or a dataset's name
  std::string checkpoint;  ///< "@epoch-20", or empty
  std::string path;        ///< may be empty
};
/// "finetune@epoch-20:ckpt/model.npz", "finetune:train.py", "models/llama@v1". Errors: `invalid`.
Result<FilesAt> parse_files_at(std::string_view text);

/// "last=5", "best=3", "metric=loss", "mode=max", "every=10". Errors: `invalid`.
Result<Retention> parse_retention(const std::vector<std::string>& clauses);

/// "quantized=q4_k_m". Errors: `invalid` without '=' or name.
Result<std::pair<std::string, std::string>> parse_property(std::string_view text);

/// "epoch-15" and "@epoch-15" as "@epoch-15"; "start" and "" stay.
std::string checkpoint_word(std::string_view text);

}  // namespace zed::cli
