deploy :fleet, pool: "tank" do
  job :train do
    run "a \xZ b"
    shell "\u12"
    setup "nul \0"
    env A: "\xFF", B: "\u{110000}"
  end
end
