deploy :fleet, pool: "tank" do
  job :nothing do
    setup
    run "true"
  end

  job :list do
    setup ["make", "all"]
    run "true"
  end

  job :keyword do
    setup "make", after: "1 hour"
    run "true"
  end

  job :duration do
    setup "make", timeout: "soon"
    run "true"
  end

  job :twice do
    setup "make"
    setup "make again"
    run "true"
  end
end
