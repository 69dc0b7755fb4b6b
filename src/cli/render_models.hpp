#pragma once
// Replies about models as text: pure functions, as cli/render.hpp's.

#include <string>

#include "api/model_replies.hpp"
#include "api/replies.hpp"
#include "cli/view.hpp"

namespace zed::cli {

std::string render(const api::ShowModelReply& reply, const View& view);
std::string render(const api::FitReply& reply, const View& view);
std::string render(const api::AliasReply& reply, const View& view);
std::string render(const api::RemoveModelReply& reply, const View& view);
std::string render(const api::LineageReply& reply, const View& view);

/// Who has it: "server, laptop (@v1, older), macbook (on its way)".
std::string copies_of(const api::ModelRow& model);

/// "q4_k_m, 4.89 bits per weight, llama, 8.03 B parameters, 131072 tokens, needs vram:7GiB"; empty
/// if nothing is known.
std::string summary_of(const Properties& properties);

}  // namespace zed::cli
