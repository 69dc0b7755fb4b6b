defmodule A do
  use Zed.DSL
end
