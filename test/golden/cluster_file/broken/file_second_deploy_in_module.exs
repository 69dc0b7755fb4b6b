defmodule A do
  use Zed.DSL

  deploy :one do
  end

  deploy :two do
  end
end
