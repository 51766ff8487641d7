// A button that opens a small panel; closes on Esc, on a click elsewhere and when focus leaves.
import { type ReactNode, useEffect, useRef, useState } from "react";

interface MenuProps {
  label: string;
  button: ReactNode;
  children: (close: () => void) => ReactNode;
}

export function Menu({ label, button, children }: MenuProps) {
  const [isOpen, setIsOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const closeOutside = (event: Event): void => {
      if (!box.current?.contains(event.target as Node)) setIsOpen(false);
    };
    document.addEventListener("pointerdown", closeOutside);
    document.addEventListener("focusin", closeOutside);
    return () => {
      document.removeEventListener("pointerdown", closeOutside);
      document.removeEventListener("focusin", closeOutside);
    };
  }, [isOpen]);
  return (
    <div className="menu" ref={box} onKeyDown={(event) => event.key === "Escape" && setIsOpen(false)}>
      <button
        type="button"
        className="menu-button"
        aria-label={label}
        aria-expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
      >
        {button}
      </button>
      {isOpen && <div className="menu-panel">{children(() => setIsOpen(false))}</div>}
    </div>
  );
}
