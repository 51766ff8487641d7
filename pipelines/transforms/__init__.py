"""Pure functions from DataFrame to DataFrame: testable on five rows, without a broker."""
