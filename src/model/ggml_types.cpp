#include "model/ggml_types.hpp"

#include <algorithm>
#include <array>

namespace zed::model {
namespace {

// By id. 4, 5, 31 to 33 and 36 to 38 were taken out of the format before files with them spread.
constexpr std::array types{
    GgmlType{0, "f32", 1, 4, false},
    GgmlType{1, "f16", 1, 2, false},
    GgmlType{2, "q4_0", 32, 18, true},
    GgmlType{3, "q4_1", 32, 20, true},
    GgmlType{6, "q5_0", 32, 22, true},
    GgmlType{7, "q5_1", 32, 24, true},
    GgmlType{8, "q8_0", 32, 34, true},
    GgmlType{9, "q8_1", 32, 40, true},
    GgmlType{10, "q2_k", 256, 84, true},
    GgmlType{11, "q3_k", 256, 110, true},
    GgmlType{12, "q4_k", 256, 144, true},
    GgmlType{13, "q5_k", 256, 176, true},
    GgmlType{14, "q6_k", 256, 210, true},
    GgmlType{15, "q8_k", 256, 292, true},
    GgmlType{16, "iq2_xxs", 256, 66, true},
    GgmlType{17, "iq2_xs", 256, 74, true},
    GgmlType{18, "iq3_xxs", 256, 98, true},
    GgmlType{19, "iq1_s", 256, 50, true},
    GgmlType{20, "iq4_nl", 32, 18, true},
    GgmlType{21, "iq3_s", 256, 110, true},
    GgmlType{22, "iq2_s", 256, 82, true},
    GgmlType{23, "iq4_xs", 256, 136, true},
    GgmlType{24, "i8", 1, 1, false},
    GgmlType{25, "i16", 1, 2, false},
    GgmlType{26, "i32", 1, 4, false},
    GgmlType{27, "i64", 1, 8, false},
    GgmlType{28, "f64", 1, 8, false},
    GgmlType{29, "iq1_m", 256, 56, true},
    GgmlType{30, "bf16", 1, 2, false},
    // Repacked for ARM when they were written; no tool writes them any more, old files have them.
    GgmlType{31, "q4_0_4_4", 32, 18, true},
    GgmlType{32, "q4_0_4_8", 32, 18, true},
    GgmlType{33, "q4_0_8_8", 32, 18, true},
    GgmlType{34, "tq1_0", 256, 54, true},
    GgmlType{35, "tq2_0", 256, 66, true},
    GgmlType{36, "iq4_nl_4_4", 32, 18, true},
    GgmlType{37, "iq4_nl_4_8", 32, 18, true},
    GgmlType{38, "iq4_nl_8_8", 32, 18, true},
    GgmlType{39, "mxfp4", 32, 17, true},
    GgmlType{40, "nvfp4", 64, 36, true},
    GgmlType{41, "q1_0", 128, 18, true},
    GgmlType{42, "q2_0", 64, 18, true},
};

struct FileType {
  std::uint64_t id;
  std::string_view name;
};
constexpr std::array file_types{
    FileType{0, "f32"},       FileType{1, "f16"},       FileType{2, "q4_0"},
    FileType{3, "q4_1"},      FileType{4, "q4_1"},      FileType{7, "q8_0"},
    FileType{8, "q5_0"},      FileType{9, "q5_1"},      FileType{10, "q2_k"},
    FileType{11, "q3_k_s"},   FileType{12, "q3_k_m"},   FileType{13, "q3_k_l"},
    FileType{14, "q4_k_s"},   FileType{15, "q4_k_m"},   FileType{16, "q5_k_s"},
    FileType{17, "q5_k_m"},   FileType{18, "q6_k"},     FileType{19, "iq2_xxs"},
    FileType{20, "iq2_xs"},   FileType{21, "q2_k_s"},   FileType{22, "iq3_xs"},
    FileType{23, "iq3_xxs"},  FileType{24, "iq1_s"},    FileType{25, "iq4_nl"},
    FileType{26, "iq3_s"},    FileType{27, "iq3_m"},    FileType{28, "iq2_s"},
    FileType{29, "iq2_m"},    FileType{30, "iq4_xs"},   FileType{31, "iq1_m"},
    FileType{32, "bf16"},     FileType{33, "q4_0_4_4"}, FileType{34, "q4_0_4_8"},
    FileType{35, "q4_0_8_8"}, FileType{36, "tq1_0"},    FileType{37, "tq2_0"},
    FileType{38, "mxfp4"},    FileType{39, "nvfp4"},    FileType{40, "q1_0"},
    FileType{41, "q2_0"},
};

}  // namespace

std::span<const GgmlType> ggml_types() {
  return types;
}

const GgmlType* ggml_type(std::uint32_t id) {
  const auto* found =
      std::find_if(types.begin(), types.end(), [&](const GgmlType& type) { return type.id == id; });
  return found == types.end() ? nullptr : &*found;
}

std::string_view file_type_name(std::uint64_t file_type) {
  for (const FileType& known : file_types)
    if (known.id == file_type) return known.name;
  return {};
}

}  // namespace zed::model
