defmodule A do
  use Zed.DSL
  deploy :one do
  end
end

defmodule B do
  use Zed.DSL
end
