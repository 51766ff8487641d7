// Light, dark, or as the system says. public/theme.js applies the same choice before the first paint.
import { useState } from "react";

export type Theme = "system" | "light" | "dark";
const STORAGE_KEY = "highwater.theme";

function read(): Theme {
  const chosen = localStorage.getItem(STORAGE_KEY);
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

function apply(theme: Theme): void {
  if (theme === "system") {
    localStorage.removeItem(STORAGE_KEY);
    delete document.documentElement.dataset["theme"];
  } else {
    localStorage.setItem(STORAGE_KEY, theme);
    document.documentElement.dataset["theme"] = theme;
  }
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(read);
  return [
    theme,
    (next) => {
      apply(next);
      setTheme(next);
    },
  ];
}
