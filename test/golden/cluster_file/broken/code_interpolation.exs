deploy :fleet, pool: "tank" do
  job :train do
    run "train #{epochs}"
    shell "ok #{"}"} still"
  end
end
