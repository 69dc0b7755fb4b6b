#pragma once
// What a GGUF file's metadata says of layers. Inside the room only.

#include "model/geometry.hpp"
#include "model/gguf.hpp"

namespace zed::model {

/// Layers, widths and what each layer remembers; sizes are the caller's. Follows llama.cpp's
/// llama-hparams.cpp and models/*.cpp. Figures that are missing or absurd are left 0.
Geometry gguf_geometry(const Gguf& file);

/// Memory that the graph of a projector ("clip" files) takes, by its largest image.
Bytes projector_compute(const Gguf& file);

}  // namespace zed::model
