import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's own command line tools, many in one JVM, whose start is dear. A line in: {"words": class and arguments, "stdin": text}.
 * A line out: {"code": what it would have ended with, "output": what it printed}.
 */
public final class ToolRunner {
    private static final class Ended extends RuntimeException {}

    /** The first exit counts: some tools catch everything around their own. */
    private static Integer ended;

    /** What a tool wants to do when the process ends, such as sending what is left. */
    private static final List<Runnable> atEnd = new ArrayList<>();

    /** Stands for System.out before any tool is loaded: Scala's keeps what it finds first. */
    private static final class Switched extends OutputStream {
        volatile OutputStream target = new ByteArrayOutputStream();

        @Override public void write(int letter) {
            byte[] one = {(byte) letter};
            write(one, 0, 1);
        }

        @Override public void write(byte[] bytes, int from, int count) {
            ((ByteArrayOutputStream) target).write(bytes, from, count);
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        Switched said = new Switched();
        PrintStream shown = new PrintStream(said, true, "UTF-8");
        System.setOut(shown);
        System.setErr(shown);
        Exit.setExitProcedure((code, message) -> end(code));
        Exit.setHaltProcedure((code, message) -> end(code));
        Exit.setShutdownHookAdder((name, work) -> atEnd.add(work));
        ObjectMapper json = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream output = new ByteArrayOutputStream();
            said.target = output;
            JsonNode asked = json.readTree(line);
            String[] words = json.convertValue(asked.get("words"), String[].class);
            System.setIn(new ByteArrayInputStream(asked.get("stdin").asText().getBytes("UTF-8")));
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            shown.flush();
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("code", code);
            answer.put("output", output.toString("UTF-8"));
            answers.println(json.writeValueAsString(answer));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static void end(int code) {
        if (ended == null) ended = code;
        throw new Ended();
    }

    private static int run(String name, String[] arguments) {
        ended = null;
        int code = 0;
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException error) {
            if (!(error.getCause() instanceof Ended)) {
                error.getCause().printStackTrace();
                code = 1;
            }
        } catch (ReflectiveOperationException error) {
            error.printStackTrace();
            code = 1;
        }
        atEnd.forEach(Runnable::run);
        atEnd.clear();
        return ended == null ? code : ended;
    }
}
