defmodule A do
  use Zed.DSL
  @vram 48

  deploy :fleet do
    model :llama do
      requires vram: @vram
    end
  end
end
