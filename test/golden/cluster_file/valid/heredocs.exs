deploy :fleet do
  job :a do
    shell """
    set -e
    python3 train.py \
      --epochs 5

    echo "done" | tee log
    """
  end
  job :b do
      shell("""
      one
      """)
  end
  job :c do
    env A: """
        two
        """,
        B: "1"
    run ["sh", "-c", """
    three \#{not} interpolated
    """]
  end
end
